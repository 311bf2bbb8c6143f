"""Serves moto, a simulation of AWS, on port argv[1], with one thread.

moto itself checks the condition of a put first and writes then, so two threads can both pass the check. With
one thread, a request is over before the next one begins.
"""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
