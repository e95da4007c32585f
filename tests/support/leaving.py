"""Programs that leave a process behind when they end."""

import sys

from hotloop.lab.programs.launch import Program

CODE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    print(os.getpid(), flush=True)
    begin = time.process_time()
    while time.process_time() - begin < {cpu_s}:
        pass
    time.sleep({sleep_s})
    os._exit(0)
os.wait()
"""
"""The grandchild, in a session of its own, uses CPU and then sleeps."""


def leaves(cpu_s: float, sleep_s: float) -> Program:
    return Program((sys.executable, "-S", "-c", CODE.format(cpu_s=cpu_s, sleep_s=sleep_s)))
