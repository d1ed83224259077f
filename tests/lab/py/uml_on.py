"""Client of uml_server.py, for `lab on u1 CMD`.

    uml_on.py ADDRESS TOKEN-FILE CMD...

Exits with the exit status of the command, or with 125 if u1 does not answer or ends meanwhile.
"""
import json
import os
import socket
import struct
import sys
import threading

PORT = 7022
END, OUT, ERR, _ALIVE = range(4)


def feed(connection):
    """Sends stdin to the command, in a daemon thread, because nothing waits for the end of stdin."""
    try:
        while chunk := os.read(0, 65536):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    address, token, *argv = sys.argv[1:]
    try:
        connection = socket.create_connection((address, PORT), 20)
        connection.settimeout(None)
        with open(token, encoding="ascii") as file:
            request = {"token": file.read(), "argv": argv}
        connection.sendall(json.dumps(request).encode() + b"\n")
        threading.Thread(target=feed, args=(connection,), daemon=True).start()
        answers = connection.makefile("rb")
        while head := answers.read(5):
            kind, length = struct.unpack("!BI", head)
            content = answers.read(length)
            if kind == END:
                return int(content)
            if kind in (OUT, ERR):
                file = sys.stdout.buffer if kind == OUT else sys.stderr.buffer
                file.write(content)
                file.flush()
    except (OSError, struct.error) as why:
        print(f"lab: u1: {why}", file=sys.stderr)
        return 125
    print("lab: u1 is gone", file=sys.stderr)
    return 125


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the thread may wait for stdin without end
