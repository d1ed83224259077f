"""releases.py ADDRESS PORT FOLDER CERTIFICATE KEY: serves the files of a folder over HTTPS."""
import functools
import http.server
import ssl
import sys

address, port, folder, certificate, key = sys.argv[1:]
answers = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
server = http.server.ThreadingHTTPServer((address, int(port)), answers)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
