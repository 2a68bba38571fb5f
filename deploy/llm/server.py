"""Serves one GGUF file on a port of loopback and prints the base URL of its
OpenAI-compatible API. The model answers to the name smollm2-135m.

usage: server.py MODEL PORT [--until-eof]

Port 0 takes a free one. It ends by SIGTERM or SIGINT; with --until-eof also with its
input, so that it does not outlive the process that holds the other end.
"""

import os
import signal
import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.reuse_port = False
params.offline = True
params.ui = False
params.n_gpu_layers = 0
# Two threads wait for each other at every step: while tests use the cores they write two
# tokens a second, but one thread writes 25.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.n_parallel = 1
params.n_ctx = 4096
params.ctx_shift = False  # an input that is too long is an error, as with other servers

# So small a model repeats itself, and seldom ends a list.
params.sampling.penalty_repeat = 1.3
params.sampling.penalty_last_n = 200

over = threading.Event()
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: over.set())
if "--until-eof" in sys.argv:

    def wait_for_eof():
        while os.read(0, 1024):
            pass
        over.set()

    threading.Thread(target=wait_for_eof, daemon=True).start()

server = xllamacpp.Server(params)
print(server.listening_address + "/v1", flush=True)
over.wait()
