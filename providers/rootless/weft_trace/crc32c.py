# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CRC32c of octets that are followed by many zeros, whose number costs nothing."""
import functools


def _table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = _table()


def _apply(matrix, vector):
    result = 0
    for row in matrix:
        if not vector:
            break
        if vector & 1:
            result ^= row
        vector >>= 1
    return result


@functools.lru_cache(maxsize=None)
def _doubled(power):
    """What 2^POWER zero octets do to a register: its bits' images."""
    if not power:
        return [TABLE[v & 255] ^ v >> 8 for v in (1 << i for i in range(32))]
    half = _doubled(power - 1)
    return [_apply(half, row) for row in half]


@functools.lru_cache(maxsize=4096)
def _zeros(count):
    matrix = [1 << i for i in range(32)]
    power = 0
    while count:
        if count & 1:
            step = _doubled(power)
            matrix = [_apply(step, row) for row in matrix]
        count >>= 1
        power += 1
    return matrix


def crc32c(octets, zeros=0):
    """As MPA sends it: four octets."""
    crc = 0xffffffff
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 255] ^ crc >> 8
    if zeros:
        crc = _apply(_zeros(zeros), crc)
    return (crc ^ 0xffffffff).to_bytes(4, "little")
