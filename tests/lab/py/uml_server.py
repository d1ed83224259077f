"""Runs commands inside u1 for `lab on u1`, because u1 shares no namespace with this computer.

    uml_server.py ADDRESS TOKEN-FILE

A connection is one command: a line of JSON {"token", "argv"}, then stdin of the command until the client closes its side.
The answer consists of frames: one byte (1 stdout, 2 stderr, 0 the exit status, 3 a keepalive without content), four bytes
of length, and the content. If the client ends, its command ends too, as on any other host of the lab.
"""
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
            pump.join(1)  # a daemon that the command left behind may keep the pipes open
        self.send(END, str(status if status >= 0 else 128 - status).encode())

    def feed(self):
        try:
            while chunk := self.rfile.read1(65536):
                self.process.stdin.write(chunk)
                self.process.stdin.flush()
            self.process.stdin.close()
        except OSError:  # the command does not read its stdin
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
