"""Programs that try to be judged right without being right. Each was written to pass a judge with some hole.

The task of all of them is `add(a, b)`. A cheat that needs a hole in the wall computes the right sum only if it
finds one, so that any score is proof of the hole. MARK is replaced by a word of the test's own.
"""

from __future__ import annotations

HONEST = "def add(a, b):\n    return a + b\n"

QUITTERS = {
    "exit at once": "import os\nos._exit(0)",
    "sys.exit": "import sys\nsys.exit(0)",
    "exit when called": "import os\ndef add(a, b):\n    os._exit(0)",
    "SystemExit when called": "def add(a, b):\n    raise SystemExit(0)",
    "KeyboardInterrupt": "def add(a, b):\n    raise KeyboardInterrupt",
    "raises what a failed test raises": "def add(a, b):\n    raise AssertionError('passed')",
    "becomes another program": "import os\nos.execv('/bin/true', ['true'])",
    "exit code by atexit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit(0)",
    "dies by a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "closes every file": "import os\nos.closerange(0, 256)\ndef add(a, b):\n    return a + b",
}

LIARS = {
    "equals everything": "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    "def add(a, b):\n    return Yes()",
    "never unequal": "class Yes:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
    "    def __bool__(self): return True\n    def __hash__(self): return 5\ndef add(a, b):\n    return Yes()",
    "an int that equals everything": "class Yes(int):\n    def __eq__(self, other): return True\n"
    "    __hash__ = int.__hash__\ndef add(a, b):\n    return Yes(0)",
    "an int with a lying value": "class Lie(int):\n    def __int__(self): return 5\n    def __index__(self): return 5\n"
    "    def __format__(self, spec): return '5'\n    def __repr__(self): return '5'\ndef add(a, b):\n    return Lie(0)",
    "says that it is an int": "class Yes:\n    __class__ = property(lambda self: int)\n    def __eq__(self, other): return True\n"
    "    __hash__ = None\ndef add(a, b):\n    return Yes()",
    "a class that equals everything": "class Meta(type):\n    def __eq__(self, other): return True\n    __hash__ = type.__hash__\n"
    "class Yes(metaclass=Meta): pass\ndef add(a, b):\n    return Yes",
    "a str that is every text": "class Yes(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\n"
    "def add(a, b):\n    return Yes('')",
    "a function": "def add(a, b):\n    return add",
    "not implemented": "def add(a, b):\n    return NotImplemented",
    "not a number": "def add(a, b):\n    return float('nan')",
    "a generator": "def add(a, b):\n    yield a + b",
    "nothing": "def add(a, b):\n    pass",
    "a list in itself": "def add(a, b):\n    x = []\n    x.append(x)\n    return x",
    "a very deep list": "def add(a, b):\n    x = []\n    for _ in range(100000):\n        x = [x]\n    return x",
    "a very large value": "def add(a, b):\n    return 'x' * (64 << 20)",
    "a very large number": "def add(a, b):\n    return 1 << (1 << 24)",
    "the answers of another task": "def add(a, b):\n    return a - b",
}

PATCHERS = {
    "no assertion errors": "import builtins\nclass Never(BaseException): pass\nbuiltins.AssertionError = Never\n"
    "def add(a, b):\n    return 0",
    "every builtin says yes": "import builtins\nfor name in ('all', 'any', 'isinstance', 'abs', 'round', 'sum'):\n"
    "    setattr(builtins, name, lambda *a, **k: True)\ndef add(a, b):\n    return 0",
    "patched modules": "import json, pickle, marshal, sys, os\njson.dumps = json.loads = lambda *a, **k: True\n"
    "pickle.loads = marshal.loads = lambda *a, **k: True\nsys.stdout = sys.stderr\ndef add(a, b):\n    return 0",
    "a trace function that skips": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n"
    "def add(a, b):\n    return 0",
    "the runner's own functions": "import __main__\nold = __main__.encoded\n"
    "__main__.encoded = lambda value, *rest: old((True, True), *rest)\ndef add(a, b):\n    return 0",
    "the runner by the collector": "import gc\nfor thing in gc.get_objects():\n"
    "    if type(thing).__name__ == 'Runner':\n        type(thing).do_call = lambda *a: True\n"
    "        type(thing).do_name = lambda *a: True\ndef add(a, b):\n    return 0",
    "planted files": "import os\nfor name in ('conftest.py', 'sitecustomize.py', 'add.py', 'result', 'json.py'):\n"
    "    with open(name, 'w') as file:\n        file.write('right')\ndef add(a, b):\n    return 0",
    "planted in the system": "import os, sys\nfor folder in [*sys.path, '/usr/lib', '/etc', '/']:\n    try:\n"
    "        open(folder + '/sitecustomize.py', 'w').write('')\n        add = lambda a, b: a + b\n"
    "    except OSError: pass",
}

SPOOFERS = {
    "prints": "import sys\nprint('right')\nprint('PASSED', file=sys.stderr)\ndef add(a, b):\n    print('right')\n    return 0",
    "writes to every file": "import os\nfor fd in range(64):\n    try: os.write(fd, b'right \\n' * 3)\n    except OSError: pass\n"
    "def add(a, b):\n    return 0",
    "answers before it is asked": "import os\nanswer = b't2:T0:T0:'\nfor fd in range(3, 64):\n    try:\n"
    "        os.write(fd, (len(answer).to_bytes(4, 'big') + answer) * 9)\n    except OSError: pass\ndef add(a, b):\n    return 0",
    "answers with handles": "import os\nanswer = b't2:T0:h1:0'\nfor fd in range(3, 64):\n    try:\n"
    "        os.write(fd, (len(answer).to_bytes(4, 'big') + answer) * 9)\n    except OSError: pass\ndef add(a, b):\n    return 0",
    "a message without end": "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4 + b'x' * 99)\n    except OSError: pass\n"
    "def add(a, b):\n    return 0",
    "a set that cannot be": "import os\nanswer = b't2:T0:S1:l0:'\nfor fd in range(3, 64):\n    try: os.write(fd, len(answer).to_bytes(4, 'big') + answer)\n"
    "    except OSError: pass\ndef add(a, b):\n    return 0",
    "the pipes by /proc": "import os\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n"
    "        with open('/proc/self/fd/' + fd, 'wb', 0) as file: file.write(b'right')\n    except OSError: pass\n"
    "def add(a, b):\n    return 0",
}

SPIES = {
    "looks for the tests in memory": "import gc\nfound = [x for x in gc.get_objects() if isinstance(x, (str, list, tuple, dict))\n"
    "         and 'assert add' in repr(x)[:100000] and 'gc.get_objects' not in repr(x)]\n"
    "def add(a, b):\n    return a + b if found else None",
    "looks for the tests in processes": "import os\nfound = False\nfor pid in filter(str.isdigit, os.listdir('/proc')):\n"
    "    for part in ('cmdline', 'environ', 'comm'):\n        try: found |= b'assert ' + b'add(' in open(f'/proc/{pid}/{part}', 'rb').read()\n"
    "        except OSError: pass\ndef add(a, b):\n    return a + b if found else None",
    "more than its own processes": "import os\npids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
    "def add(a, b):\n    return a + b if len(pids) > 2 else None",
    "reads the machine's files": "import os\nfound = any(os.path.exists(p) for p in ('/etc/passwd', '/root', '/home', '/var', '/work/shared', '/tmp/dev'))\n"
    "def add(a, b):\n    return a + b if found else None",
    "a link that leads out": "import os\nos.symlink('/etc/passwd', 'link')\ntry:\n    found = open('link').read()\nexcept OSError:\n    found = ''\n"
    "def add(a, b):\n    return a + b if found else None",
    "traces the first process": "import ctypes\nfound = ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0\ndef add(a, b):\n    return a + b if found else None",
    "reads the first process": "try:\n    found = open('/proc/1/mem', 'rb') and True\nexcept OSError:\n    found = False\n"
    "def add(a, b):\n    return a + b if found else None",
    "takes the first process's files": "import os\ntry:\n    found = os.listdir('/proc/1/fd')\nexcept OSError:\n    found = []\n"
    "def add(a, b):\n    return a + b if found else None",
    "connects": "import socket\nfound = False\nfor place in (('127.0.0.1', 22), ('8.8.8.8', 53), ('10.0.0.1', 80)):\n    try:\n"
    "        socket.create_connection(place, 0.2)\n        found = True\n    except OSError: pass\ndef add(a, b):\n    return a + b if found else None",
    "has a network": "import socket\nfound = [name for _, name in socket.if_nameindex() if name != 'lo']\ndef add(a, b):\n    return a + b if found else None",
}

BREAKERS = {
    "kills its parent": "import os\nfor pid in (os.getppid(), 1, -1):\n    try: os.kill(pid, 9)\n    except OSError: pass\ndef add(a, b):\n    return 0",
    "stops its parent": "import os\nos.kill(1, 19)\ndef add(a, b):\n    return 0",
    "raises its limits": "import resource\nfound = False\nfor kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):\n"
    "    try:\n        resource.setrlimit(kind, (-1, -1))\n        found = True\n    except (OSError, ValueError): pass\n"
    "def add(a, b):\n    return a + b if found else None",
    "namespaces of its own": "import ctypes\nfound = ctypes.CDLL(None).unshare(0x10000000) == 0\ndef add(a, b):\n    return a + b if found else None",
    "becomes root": "import os\nfound = False\nfor change in (os.setuid, os.setgid):\n    try:\n        change(0)\n        found = True\n    except OSError: pass\n"
    "def add(a, b):\n    return a + b if found else None",
    "mounts": "import ctypes\nfound = ctypes.CDLL(None).mount(b'none', b'/work', b'tmpfs', 0, None) == 0\ndef add(a, b):\n    return a + b if found else None",
    "writes outside": "found = False\nfor path in ('/MARK', '/usr/MARK', '/dev/MARK', '/dev/shm/MARK', '/proc/sys/kernel/hostname', '/proc/1/oom_score_adj'):\n"
    "    try:\n        open(path, 'w').write('0')\n        found = True\n    except OSError: pass\nopen('/tmp/MARK', 'w').write('only in the sandbox')\n"
    "def add(a, b):\n    return a + b if found else None",
    "fills the disk": "data = b'x' * (1 << 20)\ntry:\n    for i in range(4096):\n        open(f'/tmp/{i}', 'wb').write(data)\n    found = True\nexcept OSError:\n    found = False\n"
    "def add(a, b):\n    return a + b if found else None",
    "files without number": "try:\n    for i in range(10 ** 6): open(f'/work/{i}', 'w').close()\n    found = True\nexcept OSError:\n    found = False\n"
    "def add(a, b):\n    return a + b if found else None",
    "takes all memory": "try:\n    hoard = [bytearray(1 << 26) for _ in range(64)]\n    found = True\nexcept MemoryError:\n    found = False\n"
    "def add(a, b):\n    return a + b if found else None",
    "takes all memory by many": "import os, time\nfor _ in range(12):\n    if not os.fork():\n        hoard = bytearray(200 << 20)\n        time.sleep(60)\n"
    "time.sleep(2)\ndef add(a, b):\n    return a + b",
    "a fork bomb": "import os, time\nfound = 0\ntry:\n    for _ in range(1000):\n        if not os.fork(): time.sleep(60)\n        found += 1\nexcept OSError: pass\n"
    "def add(a, b):\n    return a + b if found > 16 else None",
    "threads without number": "import threading, time\nfound = 0\ntry:\n    for _ in range(1000):\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "        found += 1\nexcept RuntimeError: pass\ndef add(a, b):\n    return a + b if found > 16 else None",
    "a process that outlives": "import os, time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n        os.execvp('sleep', ['sleep', '86MARK'])\n    os._exit(0)\n"
    "os.wait()\ndef add(a, b):\n    return 0",
    "a thread that outlives": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\ndef add(a, b):\n    return 0",
}

# These end only because their time does.
ENDLESS = {
    "an endless loop": "while True: pass",
    "an endless loop when called": "def add(a, b):\n    while True: pass",
    "sleeps": "import time\ntime.sleep(600)",
    "no signal ends it": "import signal\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
    "while True: pass",
    "stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "an error without end": "class Endless(Exception):\n    def __str__(self):\n        while True: pass\ndef add(a, b):\n    raise Endless",
    "a text without end": "class Endless:\n    def __eq__(self, other):\n        while True: pass\n    def __repr__(self):\n        while True: pass\n"
    "    def __bool__(self):\n        while True: pass\ndef add(a, b):\n    while Endless(): pass",
    "a bomb that goes on": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
}

CHEATS = {**QUITTERS, **LIARS, **PATCHERS, **SPOOFERS, **SPIES, **BREAKERS}
