"""A filter of system calls: what kernel bugs are often reached through, and memory that belongs to no process."""

from __future__ import annotations

import platform
import struct

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER_AT, MACHINE_AT = 0, 4
# Calls with this bit belong to x86-64's second table, which would bypass a list by number.
X32 = 0x40000000

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = {
    "x86_64": {
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "setns": 308,
        "perf_event_open": 298,
        "bpf": 321,
        "userfaultfd": 323,
        "kexec_load": 246,
        "open_by_handle_at": 304,
        "memfd_create": 319,
        "shmget": 29,
    },
    "aarch64": {
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "unshare": 97,
        "mount": 40,
        "umount2": 39,
        "pivot_root": 41,
        "setns": 268,
        "perf_event_open": 241,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_load": 104,
        "open_by_handle_at": 265,
        "memfd_create": 279,
        "shmget": 194,
    },
}
# Newer calls have one number everywhere: io_uring, the new mount calls, files of other processes.
REFUSED_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "memfd_secret": 447,
}


def filter_program(machine: str | None = None) -> bytes:
    """The filter as the kernel reads it (an array of `struct sock_filter`); empty for a machine not listed."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return b""
    refused = [*REFUSED[machine].values(), *REFUSED_EVERYWHERE.values()]
    lines = [(LOAD, 0, 0, MACHINE_AT), (EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, REFUSE)]
    lines += [(LOAD, 0, 0, NUMBER_AT), (AT_LEAST, len(refused) + 1, 0, X32)]
    for left, number in zip(range(len(refused), 0, -1), refused, strict=True):
        lines.append((EQUAL, left, 0, number))
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
