"""Runs commands inside u1 for `lab on u1`: the one way into a host that shares no namespace with this machine.

    uml_server.py ADDRESS TOKEN-FILE

A connection is one command: a line of JSON {"token", "argv"}, then the command's standard input until the client shuts its side.
Back come frames of one byte (1 standard output, 2 standard error, 0 the exit status, 3 nothing: are you there?), four bytes of
length, and the content. A client that is gone takes its command with it, as with any other host of the lab."""
import json
import os
import signal
import socketserver
import struct
import subprocess
import sys
import threading

PORT = 7022
END, OUT, ERR, ALIVE = range(4)


class Command(socketserver.StreamRequestHandler):
    def handle(self):
        request = json.loads(self.rfile.readline())
        with open(sys.argv[2], encoding="ascii") as token:
            if request["token"] != token.read():
                return
        self.lock = threading.Lock()
        try:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(request["argv"], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as why:
            self.send(ERR, f"{request['argv'][0]}: {why.strerror}\n".encode())
            self.send(END, b"127")
            return
        threading.Thread(target=self.feed, daemon=True).start()
        pumps = [
            threading.Thread(target=self.pump, args=(self.process.stdout, OUT), daemon=True),
            threading.Thread(target=self.pump, args=(self.process.stderr, ERR), daemon=True),
        ]
        for pump in pumps:
            pump.start()
        while True:
            try:
                status = self.process.wait(1)
                break
            except subprocess.TimeoutExpired:
                self.send(ALIVE, b"")
        for pump in pumps:
            pump.join(1)  # a daemon that it left behind may hold the pipes for ever
        self.send(END, str(status if status >= 0 else 128 - status).encode())

    def feed(self):
        try:
            while chunk := self.rfile.read1(65536):
                self.process.stdin.write(chunk)
                self.process.stdin.flush()
            self.process.stdin.close()
        except OSError:  # it does not read what it is given
            pass

    def pump(self, file, kind):
        while chunk := file.read1(65536):
            self.send(kind, chunk)

    def send(self, kind, content):
        try:
            with self.lock:
                self.wfile.write(struct.pack("!BI", kind, len(content)) + content)
        except OSError:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, AttributeError):
                pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


Server((sys.argv[1], PORT), Command).serve_forever()
