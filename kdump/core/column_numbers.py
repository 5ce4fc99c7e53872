"""Numbers of the columns in which the core keeps headers and records, and positions of fields in a header, as the
layouts in kdump.format give them.

column_numbers.pxd gives the same constants to the compiled core: `python -m tools.core_columns` writes it."""

from __future__ import annotations

from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, CONTROL, DELETE_HORIZON, TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.format.batch_header import KNOWN_ATTRIBUTES as KNOWN_ATTRIBUTES
from kdump.format.batch_header import LOG_OVERHEAD as LOG_OVERHEAD
from kdump.format.batch_header import MIN_RECORD_SIZE as MIN_RECORD_SIZE
from kdump.format.codec_table import CODECS
from kdump.format.legacy_message import MESSAGE_V0, MESSAGE_V1, MIN_SIZES

(
    BATCH_START,
    BATCH_END,
    BASE_OFFSET,
    LAST_OFFSET,
    LEADER_EPOCH,
    ATTRIBUTES,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    RECORD_COUNT,
    BASE_TIMESTAMP,
    HEADER_WIDTH,
) = range(13)
"""Columns of HeaderColumns: start and end of a batch in the buffer, its offsets, and fields of its header. The last is
their number."""

(
    RECORD_START,
    RECORD_END,
    RECORD_ATTRIBUTES,
    TIMESTAMP_DELTA,
    OFFSET_DELTA,
    KEY_START,
    KEY_SIZE,
    VALUE_START,
    VALUE_SIZE,
    HEADERS_START,
    HEADERS_COUNT,
    RECORD_WIDTH,
) = range(12)
"""Columns of RecordColumns: a record in the buffer, including its length field; its fields; where its key, value and
headers start, with the sizes in bytes of key and value (-1: null). The last is their number."""

(
    REPLICAS_FIELD,
    DIRECTORIES_FIELD,
    LEADER_FIELD,
    LEADER_EPOCH_FIELD,
    ISR_FIELD,
    ADDING_FIELD,
    REMOVING_FIELD,
    ELIGIBLE_FIELD,
    LAST_KNOWN_FIELD,
    RECOVERY_FIELD,
    PARTITION_EPOCH_FIELD,
    PARTITION_FIELDS,
) = range(12)
"""Fields of a state.PartitionRegistration. The last is their number."""
STATE_ENTRY = 300
"""state.internal_records.ENTRY."""
OWN_ISR = 64
"""Bytes of memory that are counted for an ISR that is not the replicas."""
MOVING_LIST = 56
"""Bytes of memory that are counted for a list of a reassignment or of ELR, in addition to its brokers."""
NO_LEADER_CHANGE = -2
"""As the leader in a change of a partition."""
FRAME_WIDTH, TOPIC_ID_AT, FIELDS_AT = 3, 7, 23
"""Size of the usual frame of a metadata record; positions in that of a partition, after its number and the topic ID."""

ROWS_READ, NO_ROOM, RECORD_INVALID, HEADER_INVALID, BYTES_LEFT_OVER = range(5)
"""Where record_columns.read_rows stops."""
SMALL_BATCH = 512
"""Bytes of a batch below which the core takes the CRC itself: that is faster than a call of the library."""
RECORDS_AT_ONCE = 64
"""Number of records that are checked at once where their columns are not kept."""

(
    RECORDS,
    RECORD_BYTES,
    NULL_KEYS,
    KEY_BYTES,
    NULL_VALUES,
    VALUE_BYTES,
    HEADERS,
    HEADER_BYTES,
    UNTIMED,
    LATE_RECORDS,
    LONGEST_KEY,
    LONGEST_VALUE,
    OLDEST,
    NEWEST,
    LATEST,
) = range(15)
"""Sums that record_counts.py keeps: records and their bytes (including the length field); null keys and bytes of keys;
the same for values; headers and their bytes; records without a timestamp, or with an impossible one; records that are
older than an earlier one. Then extremes, -1 for none: of sizes, of timestamps (epoch ms), and of ms by which a record
is older than an earlier one."""
EXTREMES = (LONGEST_KEY, LONGEST_VALUE, OLDEST, NEWEST, LATEST)
EXTREME_ROW = len(EXTREMES)
"""sums[extreme + EXTREME_ROW] is the row of the record with that extreme."""
SUMS_WIDTH = LATEST + EXTREME_ROW + 1

IN_KEYS, IN_VALUES, IN_HEADERS = 1, 2, 4
"""Parts of a record in which record_search looks."""
(
    NODE_NULL,
    NODE_VARINT,
    NODE_FIXED,
    NODE_BYTES,
    NODE_STRING,
    NODE_ANY,
    NODE_TEXT,
    NODE_DOUBLE,
    NODE_RECORD,
    NODE_UNION,
    NODE_ARRAY,
    NODE_MAP,
    NODE_SAME,
    NODE_CHOICE,
    NODE_MESSAGE,
    NODE_BLOCK,
    NODE_ITEMS,
) = range(17)
"""Kinds of nodes in the program of a schema, up to DOUBLE those without others in them. After the kind: of VARINT,
whether it is unsigned (0), signed (1) or zigzag (2), and the lowest and the highest value; of FIXED, the size; of
RECORD and UNION, how many nodes, and which; of ARRAY, MAP and SAME, the node of the items, or the same one. Of
Protobuf: of CHOICE, what message indexes lead to, how many nodes, and which; of MESSAGE, how many fields, and the tag
and node of each; of BLOCK, the node of what its length bounds: a message, ITEMS (up to the end, of a node), ANY bytes
or TEXT. DOUBLE is 8 bytes whose digits may be asked for, as those of VARINT."""
EXACT_DIGITS = 15
"""Digits up to which decimal fractions are different numbers."""
NODE_DEPTH = 60
"""Depth of nested values that record_search looks into."""

(
    PLAIN_RECORDS,
    PLAIN_BYTES,
    LARGEST_RECORD,
    NO_KEYS,
    UNFRAMED_KEYS,
    UNFRAMED_VALUES,
    NO_TIME,
    FIRST_TIME,
    LAST_TIME,
    SUMS,
) = range(10)
"""Sums of plain_records: records, bytes of keys, values and headers, the most of one record; without a key; keys and
values that do not begin as Confluent's serializers begin them (magic 0, and a schema ID); without a timestamp, and the
lowest and highest timestamp, 0 for none. The last is their number."""

HEADER_SIZE = BATCH_HEADER.size
MIN_BATCH_LENGTH = HEADER_SIZE - LOG_OVERHEAD
MARKER_SIZE = HEADER_SIZE + 17
"""Bytes of a batch with a transaction marker."""
MARKER_TYPE_AT, MARKER_EPOCH_AT = 8, 12
"""Positions in its record: the last byte of its type, and the coordinator epoch."""
_AT = BATCH_HEADER.positions
LENGTH_AT, LEADER_EPOCH_AT, MAGIC_AT = _AT["batchLength"], _AT["partitionLeaderEpoch"], _AT["magic"]
CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT = _AT["crc"], _AT["attributes"], _AT["lastOffsetDelta"]
BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT = _AT["baseTimestamp"], _AT["maxTimestamp"]
PRODUCER_ID_AT, PRODUCER_EPOCH_AT, BASE_SEQUENCE_AT = _AT["producerId"], _AT["producerEpoch"], _AT["baseSequence"]
RECORD_COUNT_AT = _AT["recordCount"]

CODEC, LAST_CODEC = COMPRESSION.mask, max(CODECS)
LOG_APPEND_TIME = TIMESTAMP_TYPE.mask
IS_TRANSACTIONAL, IS_CONTROL, HAS_DELETE_HORIZON = TRANSACTIONAL.mask, CONTROL.mask, DELETE_HORIZON.mask

MESSAGE_CRC_AT, MESSAGE_ATTRIBUTES_AT = MESSAGE_V1.positions["crc"], MESSAGE_V1.positions["attributes"]
MESSAGE_TIMESTAMP_AT = MESSAGE_V1.positions["timestamp"]
MESSAGE_V0_KEY_AT, MESSAGE_V1_KEY_AT = MESSAGE_V0.size, MESSAGE_V1.size
"""Positions in a message of v0 or v1; a key starts after its size."""
MESSAGE_V0_MIN, MESSAGE_V1_MIN = MIN_SIZES[0], MIN_SIZES[1]
"""Bytes of the smallest message, without offset and messageSize."""
