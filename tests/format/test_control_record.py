"""Control records: real ones of every type on Kafka's disks, crafted ones of the other types, and damaged ones."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdump.format.control_record import CONTROL_TYPES, ControlRecord, control_spans, decode_control
from kdump.format.schema import load
from tests.conftest import numbers_in
from tests.each_case import each_case

DIRECTORY = bytes(range(16)).hex()

# name: (key, value, type, decoded)
RECORDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    # kafka-4.3/clean-1/payments-0/00000000000000000000.log, offset 26
    "abort": ("00000000", "000000000000", "ABORT", {"coordinatorEpoch": 0}),
    # the same, offset 12
    "commit": ("00000001", "000000000000", "COMMIT", {"coordinatorEpoch": 0}),
    # kafka-4.3-tiered/disk/__cluster_metadata-0/00000000000000000000.log, offset 0
    "leader change": (
        "00000002",
        "00000000000102000000010002000000010000",
        "LEADER_CHANGE",
        {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": [{"voterId": 1}]},
    ),
    # kafka-4.3/clean-0/__cluster_metadata-0/00000000000000000327-0000000001.checkpoint, offset 0
    "snapshot header": (
        "00000003",
        "0000000001a1fd1de11f00",
        "SNAPSHOT_HEADER",
        {"version": 0, "lastContainedLogTimestamp": 1795247956255},
    ),
    # the same, offset 134
    "snapshot footer": ("00000004", "000000", "SNAPSHOT_FOOTER", {"version": 0}),
    # The other types are on no disk: crafted from the schemas. kRaftVersion is Kafka's own spelling.
    "kraft version": ("00000005", "0000 0001 00", "KRAFT_VERSION", {"version": 0, "kRaftVersion": 1}),
    "kraft voters": (
        "00000006",
        f"0000 02 00000003 {DIRECTORY} 02 0243 0268 ea60 00 0000 0001 00 00 00",
        "KRAFT_VOTERS",
        {
            "version": 0,
            "voters": [
                {
                    "voterId": 3,
                    "voterDirectoryId": "AAECAwQFBgcICQoLDA0ODw",
                    "endpoints": [{"name": "C", "host": "h", "port": 60000}],
                    "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
                }
            ],
        },
    ),
    "leader change 1": (
        "00000002",
        f"0001 00000001 02 00000001 {DIRECTORY} 00 01 00",
        "LEADER_CHANGE",
        {
            "version": 1,
            "leaderId": 1,
            "voters": [{"voterId": 1, "voterDirectoryId": "AAECAwQFBgcICQoLDA0ODw"}],
            "grantingVoters": [],
        },
    ),
    "commit in epoch 258": ("00000001", "000000000102", "COMMIT", {"coordinatorEpoch": 258}),
}
BYTES = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value, _, _ in RECORDS.values()]


@each_case("name", RECORDS)
def test_what_they_say(name: str) -> None:
    key, value, kind, decoded = RECORDS[name]
    record = decode_control(bytes.fromhex(key), bytes.fromhex(value))
    number = int(key[-2:])
    version = decoded.get("version", 0)
    epoch = decoded.get("coordinatorEpoch")
    assert record == ControlRecord(kind, number, 0, version, decoded, epoch)


def test_every_type_has_a_schema() -> None:
    assert [CONTROL_TYPES[number].name for number in range(7)] == [
        *("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION"),
        "KRAFT_VOTERS",
    ]
    for control in CONTROL_TYPES.values():
        assert load(control.message).valid.lowest == 0


@each_case("key, kind", [("00000007", 7), ("0000ffff", -1)])
@each_case("value", [b"\xca\xfe", b"", None])
def test_an_unknown_type_is_no_problem(key: str, kind: int, value: bytes | None) -> None:
    record = decode_control(bytes.fromhex(key), value)
    assert record == ControlRecord(f"UNKNOWN({kind})", kind, 0, rest=value)


@each_case("key", [None, b"", b"\0", b"\0\0\0"])
def test_a_key_that_is_too_short(key: bytes | None) -> None:
    record = decode_control(key, b"\0\0\0\0\0\0")
    assert (record.type, record.typeId, record.keyVersion, record.value) == ("UNKNOWN", None, None, None)
    assert record.problem is not None
    assert record.problem.struct == "ControlRecordKey"
    assert record.problem.code == "control-batch-invalid"
    assert record.rest == b"\0\0\0\0\0\0"


def test_a_longer_key_of_a_newer_version() -> None:
    record = decode_control(b"\0\x01\0\x01more", b"\0\0\0\0\0\x05")
    assert (record.type, record.keyVersion, record.coordinatorEpoch, record.problem) == ("COMMIT", 1, 5, None)
    assert numbers_in(record.note) == [1, 0]
    keys, _ = control_spans(b"\0\x01\0\x01more", b"\0\0\0\0\0\x05")
    assert [(span.field.name, span.value) for span in keys] == [("version", 1), ("type", 1), ("rest", b"more")]


@each_case(
    "key, value, field, stated",
    [
        # Kafka throws an exception for these: null, short, and negative versions.
        ("00000001", None, "version", []),
        ("00000001", "", "version", [2, 0]),
        ("00000001", "0000000000", "coordinatorEpoch", [4, 3]),
        ("00000001", "ffff00000000", "version", [-1]),
        ("ffff0001", "000000000000", "version", [-1]),
        ("00000006", "0000 05", "voters", [4, 27, 0]),
        ("00000005", "0000 0001", "_taggedFields", [0]),
        # A newer version that ends too early: Kafka cannot read it either.
        ("00000001", "00070000", "coordinatorEpoch", [4, 2, 7, 0]),
    ],
)
def test_values_that_lie(key: str, value: str | None, field: str, stated: list[int]) -> None:
    problem = decode_control(bytes.fromhex(key), None if value is None else bytes.fromhex(value)).problem
    assert problem is not None
    assert (problem.field, numbers_in(problem.reason), problem.code) == (field, stated, "control-batch-invalid")


def test_a_problem_keeps_the_fields_before_it() -> None:
    _, value = BYTES[2]
    record = decode_control(b"\0\0\0\x02", value[:-1])
    assert record.problem is not None
    assert record.value == {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": [{"voterId": 1}]}
    assert record.rest is None
    shorter = decode_control(b"\0\0\0\x02", value[:8])
    assert shorter.value == {"version": 0, "leaderId": 1}
    assert shorter.rest == value[6:8]


def test_newer_versions_and_bytes_left_over() -> None:
    record = decode_control(b"\0\0\0\x01", b"\0\x02\0\0\0\x05new")
    assert (record.version, record.coordinatorEpoch, record.problem, record.rest) == (2, 5, None, b"new")
    assert numbers_in(record.note) == [2, 0, 3]
    record = decode_control(b"\0\0\0\x04", b"\0\0\0\xff")
    assert (record.problem, record.rest) == (None, b"\xff")
    assert numbers_in(record.note) == [1]


def test_spans_name_the_fields() -> None:
    keys, values = control_spans(*BYTES[2])
    assert [(span.field.name, span.value) for span in keys] == [("version", 0), ("type", 2)]
    assert keys[1].field.describe_bits(2) == ["LEADER_CHANGE"]
    assert [(span.position, span.size, span.field.name, span.value, span.depth) for span in values[:4]] == [
        (0, 2, "version", 0, 0),
        (2, 4, "leaderId", 1, 0),
        (6, 1, "voters", 1, 0),
        (7, 4, "voterId", 1, 1),
    ]
    _, values = control_spans(*BYTES[0])
    assert [(span.field.name, span.position) for span in values] == [("version", 0), ("coordinatorEpoch", 2)]


def tiled(key: bytes | None, value: bytes | None) -> None:
    for spans, data in zip(control_spans(key, value), (key, value)):
        position = 0
        for span in spans:
            assert span.position == position
            position += span.size
        assert position == len(data or b"")


@each_case("key, value", BYTES, ids=RECORDS)
def test_truncated_anywhere(key: bytes, value: bytes) -> None:
    for size in range(len(value)):
        assert decode_control(key, value[:size]).problem is not None
        tiled(key, value[:size])
    for size in range(len(key)):
        assert decode_control(key[:size], value).problem is not None
        tiled(key[:size], value)


@each_case("key, value", BYTES, ids=RECORDS)
def test_every_flipped_bit(key: bytes, value: bytes) -> None:
    for bit in range((len(key) + len(value)) * 8):
        data = bytearray(key + value)
        data[bit // 8] ^= 1 << bit % 8
        damaged = bytes(data[: len(key)]), bytes(data[len(key) :])
        record = decode_control(*damaged)
        assert record != decode_control(key, value)
        assert record.problem is None or record.problem.code == "control-batch-invalid"
        tiled(*damaged)


@given(st.integers(0, 7), st.binary(max_size=60))
def test_any_bytes(kind: int, value: bytes) -> None:
    decode_control(bytes([0, 0, 0, kind]), value)
    tiled(bytes([0, 0, 0, kind]), value)
    decode_control(value, value)
    tiled(value, value)
