"""What the modules below kdump declare. Do not edit: `python -m tools.index` writes this file."""

PLACES = {
    'doctor': ('kdump.incident.doctor.command', 'An incident: what do I do first?', 'Examine disks in an incident: what to do first, with evidence, and what not to do.'),
    'ls': ('kdump.questions.ls.command', 'What is on this disk?', 'List log directories: whose disk each is (cluster and node IDs), and what each partition has.'),
    'inspect': ('kdump.questions.inspect.command', 'What is on this disk?', 'Show or count records, batches or annotated bytes, selected by offset, time, key, value, header …'),
    'browse': ('kdump.browse.command', 'What is on this disk?', 'Browse partitions, batches, records and annotated bytes in the terminal.'),
    'schema': ('kdump.questions.schema.command', 'What is on this disk?', 'Show the fields of a layout or message: type, position, bits, meaning, versions.'),
    'stats': ('kdump.questions.stats.command', 'How many records? Where is one? How do I get them out?', 'Count records, and what consumers receive: by partition, hour, key, producer; sizes, compression, rates.'),
    'find': ('kdump.questions.find.command', 'How many records? Where is one? How do I get them out?', 'Find records by what they mean, wherever they are on the disks, and report what was not searched.'),
    'export': ('kdump.questions.export.command', 'How many records? Where is one? How do I get them out?', 'Write records, batches, findings and other tables as Parquet or Arrow, for DuckDB, Polars or pandas.'),
    'verify': ('kdump.questions.verify.command', 'Is it intact? Will the broker start?', 'Check segments, indexes and checkpoints for damage, at once or a part each night; also remote storage.'),
    'restart-plan': ('kdump.questions.restart_plan.command', 'Is it intact? Will the broker start?', 'Predict startups, also of an older release (downgrade): what is lost or deleted, how long recovery takes, in which order to start.'),
    'explain': ('kdump.incident.explain.command', 'What does this message in a log mean?', 'Explain a message, or the log, of a broker or client: meaning, cause, what is on the disk, what to do.'),
    'diff': ('kdump.questions.diff.command', 'Where do replicas differ?', 'Compare replicas of a partition: where they diverge, and in which leader epochs.'),
    'groups': ('kdump.questions.groups.command', 'What happened to groups, topics, transactions, producers?', 'Show groups, their members, committed offsets and lag, now or at an earlier time.'),
    'cluster': ('kdump.questions.cluster.command', 'What happened to groups, topics, transactions, producers?', 'Show brokers, topics, configs, ACLs … from the KRaft metadata log, and when each changed.'),
    'registry': ('kdump.questions.registry.command', 'What happened to groups, topics, transactions, producers?', 'Show a schema registry from its topic _schemas: subjects, versions, IDs, schemas, their use.'),
    'connect': ('kdump.questions.connect.command', 'What happened to groups, topics, transactions, producers?', "Show Kafka Connect from its topics: connectors, configs, tasks, offsets; MirrorMaker's checkpoints."),
    'transactions': ('kdump.questions.transactions.command', 'What happened to groups, topics, transactions, producers?', 'Show committed, aborted, open and hanging transactions, and what blocks the last stable offset.'),
    'producers': ('kdump.questions.producers.command', 'What happened to groups, topics, transactions, producers?', 'Show producers: epochs, sequences and gaps, and the state that a broker would load at startup.'),
    'retention': ('kdump.questions.retention.command', 'Why are these segments still there? What may be deleted?', 'Explain when segments are deleted or compacted, by which config, and why others are not.'),
    'space': ('kdump.questions.space.command', 'Why are these segments still there? What may be deleted?', 'Show what may be deleted on a full disk, in which order, what it frees and what it costs.'),
    'salvage': ('kdump.questions.salvage.command', 'What can be saved of damaged or deleted files?', 'Copy partitions, damaged, deleted, or up to a time, to new directories that a broker loads.'),
    'restore': ('kdump.questions.restore.command', 'What can be saved of damaged or deleted files?', 'Produce the records on a disk to topics of a running cluster, exactly once; --check compares them.'),
    'reindex': ('kdump.questions.reindex.command', 'What can be saved of damaged or deleted files?', 'Rebuild the indexes of segments as a broker does, and report what is wrong with the old ones.'),
    'rescue': ('kdump.questions.rescue.command', 'What can be saved of damaged or deleted files?', "Rebuild a cluster's metadata, if controllers are lost or halt at a record, from what is left."),
    'carve': ('kdump.questions.carve.command', 'What can be saved of damaged or deleted files?', 'Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks.'),
    'report': ('kdump.incident.report.command', 'How do I pass on what I found?', 'Write a post-mortem report as one HTML file: verdict, maps, charts, findings with their bytes.'),
    'bundle': ('kdump.questions.bundle.command', 'How do I pass on what I found?', "Write a small copy of a broker's log directories, without the records, to examine elsewhere."),
    'scan': ('kdump.spark.scan_command', 'How do I examine a hundred disks?', 'Read a fleet of disks into tables with Spark, and report where replicas differ.'),
    'query': ('kdump.spark.query_command', 'How do I examine a hundred disks?', 'Query the tables of a scan with SQL.'),
    'dump-log': ('kdump.questions.dump_log.command', 'Scripts and the shell', 'Print what kafka-dump-log prints, without its crashes and false findings.'),
    'completion': ('kdump.command_line.completion', 'Scripts and the shell', 'Print the shell completion script for bash, zsh or fish.'),
}
"""The module of each command, the question that it answers, and its help, in the order of `kdump --help`."""
COMMANDS = {name: about for name, (_, _, about) in PLACES.items()}
ANSWERS = """
kdump.incident.doctor.answer kdump.questions.ls.answer kdump.questions.inspect.record_counts
kdump.questions.schema.answer kdump.questions.stats.answer kdump.questions.stats.row_counts kdump.questions.find.answer
kdump.questions.restart_plan.answer kdump.questions.restart_plan.course
kdump.questions.restart_plan.recovery.recovery_progress kdump.questions.restart_plan.recovery.recovery_time
kdump.questions.restart_plan.recovery.recovery_work kdump.questions.restart_plan.replicas.replica_answer
kdump.incident.explain.answer kdump.incident.explain.message kdump.questions.diff.answer kdump.questions.groups.answer
kdump.questions.cluster.answer kdump.questions.registry.answer kdump.questions.connect.answer
kdump.questions.transactions.answer kdump.questions.producers.answer kdump.questions.retention.answer
kdump.questions.space.answer kdump.questions.salvage.answer kdump.questions.salvage.byte_outcomes
kdump.questions.restore.answer kdump.questions.reindex.run kdump.questions.rescue.answer kdump.questions.carve.answer
kdump.questions.carve.carved_runs kdump.questions.bundle.run kdump.spark.scan_answer kdump.answer kdump.check.finding
kdump.check.summary kdump.cluster.broker_configuration kdump.cluster.lag kdump.cluster.segment_answer
kdump.log.inspect_answer kdump.problems.catalogue kdump.state.metadata_image kdump.state.recorded_change
""".split()
"""The modules that declare JSON objects, in the order of the reference."""
API = {name: module for module, names in {
    'kdump.api.decoded_records': 'decoded',
    'kdump.api.open_log': 'Log open',
    'kdump.api.records': 'Records records',
    'kdump.check.options': 'Options',
    'kdump.incident.doctor.run': 'DoctorResult doctor',
    'kdump.incident.explain.run': 'explain',
    'kdump.incident.report.html.report': 'ReportFiles report',
    'kdump.io.errors': 'SourceError',
    'kdump.io.run': 'Limits Run',
    'kdump.log.entries': 'Entry',
    'kdump.log.output_directory': 'OutputError',
    'kdump.log.record': 'Record',
    'kdump.log.region': 'Batch Region',
    'kdump.questions.bundle.run': 'bundle',
    'kdump.questions.carve.carved_runs': 'CarvedRun',
    'kdump.questions.carve.run': 'CarvedFile carve',
    'kdump.questions.carve.search': 'CarvedBatch',
    'kdump.questions.cluster.run': 'cluster_metadata',
    'kdump.questions.connect.run': 'connect',
    'kdump.questions.diff.run': 'Diff diff',
    'kdump.questions.find.run': 'find',
    'kdump.questions.groups.run': 'groups',
    'kdump.questions.ls.run': 'ls',
    'kdump.questions.producers.run': 'producers',
    'kdump.questions.registry.run': 'registry',
    'kdump.questions.reindex.run': 'Reindexed reindex',
    'kdump.questions.rescue.run': 'rescue',
    'kdump.questions.restart_plan.answer': 'RestartPlan',
    'kdump.questions.restart_plan.replicas.restart_cluster': 'restart_cluster',
    'kdump.questions.restart_plan.run': 'restart_plan',
    'kdump.questions.retention.run': 'retention',
    'kdump.questions.salvage.answer': 'Salvaged',
    'kdump.questions.salvage.run': 'salvage',
    'kdump.questions.salvage.source.sources': 'SalvageError',
    'kdump.questions.space.run': 'space',
    'kdump.questions.stats.run': 'stats',
    'kdump.questions.stats.totals': 'Stats',
    'kdump.questions.transactions.run': 'transactions',
    'kdump.questions.verify.run': 'verify',
}.items() for name in names.split()}
"""What `import kdump` offers, and the module that defines it."""
