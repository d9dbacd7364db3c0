"""A filter of system calls: what kernel bugs are often reached through, and memory that belongs to no process."""

from __future__ import annotations

import platform
import struct

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
LOAD, EQUAL, AT_LEAST, RETURN, AND = 0x20, 0x15, 0x35, 0x06, 0x54
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT, ARGUMENT_BYTES = 0, 4, 16, 8
WHOLE = 0xFFFFFFFF
F_SETPIPE_SZ = 1031
SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS: pages that stay when no process maps them
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
        "semget": 64,
        "msgget": 68,
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
        "semget": 190,
        "msgget": 186,
    },
}
# Refused as well where no control group counts the memory that they take from the kernel.
UNCOUNTED = {
    "x86_64": {"vmsplice": 278, "inotify_init": 253, "inotify_init1": 294, "fanotify_init": 300, "mq_open": 240},
    "aarch64": {"vmsplice": 75, "inotify_init1": 26, "fanotify_init": 262, "mq_open": 180},
}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
FCNTL = {"x86_64": 72, "aarch64": 25}
MMAP = {"x86_64": 9, "aarch64": 222}
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


def filter_program(machine: str | None = None, counted: bool = True) -> bytes:
    """The filter as the kernel reads it (an array of `struct sock_filter`); empty for a machine not listed.

    `counted` says that a control group counts the memory which the kernel keeps for programs.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return b""
    refused = [*REFUSED[machine].values(), *REFUSED_EVERYWHERE.values()]
    # Limits may be changed of the process itself only: its user is also that of the sandbox's first process.
    checked = _argument_check(PRLIMIT[machine], argument=0, value=0, refuse_equal=False)
    if not counted:
        refused += UNCOUNTED[machine].values()
        checked += _argument_check(FCNTL[machine], argument=1, value=F_SETPIPE_SZ)
        checked += _argument_check(MMAP[machine], argument=3, value=SHARED_ANONYMOUS, mask=SHARED_ANONYMOUS)
    lines = [(LOAD, 0, 0, MACHINE_AT), (EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, REFUSE)]
    lines += [(LOAD, 0, 0, NUMBER_AT), (AT_LEAST, len(refused) + len(checked) + 1, 0, X32)]
    for left, number in zip(range(len(refused), 0, -1), refused, strict=True):
        lines.append((EQUAL, left + len(checked), 0, number))
    lines += [*checked, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def _argument_check(
    number: int, argument: int, value: int, mask: int = WHOLE, refuse_equal: bool = True
) -> list[tuple[int, int, int, int]]:
    """A call that is decided by the lower half of one of its arguments; other calls go on after these lines."""
    verdicts = [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return [
        (EQUAL, 0, 5, number),
        (LOAD, 0, 0, ARGUMENTS_AT + ARGUMENT_BYTES * argument),
        (AND, 0, 0, mask),
        (EQUAL, 0, 1, value),
        *(verdicts if refuse_equal else reversed(verdicts)),
    ]
