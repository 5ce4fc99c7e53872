"""The format of java.util.Properties, and what meta.properties states: held against Java's and Kafka's own classes
(JavaProperties.java), over the contents of tests/properties_contents.py."""

from __future__ import annotations

from pathlib import Path

from kdump.format.java_properties import properties
from kdump.format.meta_properties import meta_properties
from tests.each_case import each_case
from tests.properties_contents import contents

RECORD = Path(__file__).parent / "java_properties.tsv"


def java() -> list[tuple[bytes, str, str]]:
    """Each content, what java.util.Properties reads of it, and what MetaProperties does."""
    rows = (line.split("\t") for line in RECORD.read_text().splitlines())
    return [(bytes.fromhex(content), read, meta) for content, read, meta in rows]


def text_of(code_units: str) -> str:
    return bytes.fromhex(code_units).decode("utf-16-be", "replace")


def meta(values: dict[str, str]) -> str:
    try:
        version, node, cluster, directory = meta_properties(values)
    except ValueError as error:
        return str(error)
    said = "-" if cluster is None else cluster.encode("utf-16-be").hex()
    return f"{version} {'-' if node is None else node} {directory or '-'} {said}"


def test_the_record_is_of_these_contents() -> None:
    assert [content for content, _, _ in java()] == list(dict.fromkeys(contents(700)))


def test_properties_are_read_as_java_reads_them() -> None:
    failed = 0
    for content, read, _ in java():
        lines = list(properties(content))
        assert [line.position for line in lines] == [sum(each.size for each in lines[:at]) for at in range(len(lines))]
        assert sum(line.size for line in lines) == len(content)
        if read == "IllegalArgumentException":
            failed += 1
            assert any(line.problem for line in lines), content
            continue
        expected = dict(pair.split("=") for pair in read.split(",")) if read else {}
        assert not any(line.problem for line in lines), content
        values = {line.values["name"]: line.values["value"] for line in lines if line.values}
        assert values == {text_of(name): text_of(value) for name, value in expected.items()}, content
    assert failed > 50


def test_meta_properties_states_what_kafka_reads() -> None:
    kinds = set()
    for content, read, expected in java():
        if read == "IllegalArgumentException":
            continue
        said = meta({line.values["name"]: line.values["value"] for line in properties(content) if line.values})
        kinds.add(expected[:12])
        if "as a Uuid" in expected:  # Java's reasons are of its decoder
            assert said.startswith("Unable to read directory.id as a Uuid: "), content
        elif "version string" in expected:
            assert said.startswith("Invalid meta.properties version string"), content
        else:
            assert said == expected, content
    assert len(kinds) > 8


@each_case("end", [b"", b"\n", b"\r", b"\\\n", b"\\"])
def test_a_file_of_one_property(end: bytes) -> None:
    assert [line.values for line in properties(b"a=1" + end)] == [{"name": "a", "value": "1"}]
