"""The releases of Kafka that kdump knows: the newest patch of each minor one. Written by tools/adopt."""

RELEASES = (
    (2, 8, 2),
    (3, 0, 2),
    (3, 1, 2),
    (3, 2, 3),
    (3, 3, 2),
    (3, 4, 1),
    (3, 5, 2),
    (3, 6, 2),
    (3, 7, 2),
    (3, 8, 1),
    (3, 9, 2),
    (4, 0, 2),
    (4, 1, 2),
    (4, 2, 2),
    (4, 3, 1),
    (4, 4, 0),
)
