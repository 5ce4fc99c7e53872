"""Conditions on records: `key == 'user-42' and not isAborted`. docs/find.md describes the language.

`parser.parse` returns an Expression. `Expression.matches` asks it of one record, `batch` of a batch's header alone, so
that batches are ruled out before they are decompressed, and `needs` is what it looks at. Answers are NO, MAYBE or YES;
of a record, MAYBE means that something it asks for cannot be known, such as a value that nothing decodes."""
