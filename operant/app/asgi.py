"""The app as Streamlit starts it: the script `main.py` behind the guard of all our servers.

Streamlit by itself answers under any name. A stranger's page whose name was made to lead to this machine would have its
own name in both Host and Origin, and could read every run.
"""

from __future__ import annotations

import sys

import streamlit as st
from starlette.middleware import Middleware

from operant.app.server import HOST, SCRIPT
from operant.web.access import Access
from operant.web.guard import Guard

app = st.App(SCRIPT, middleware=[Middleware(Guard, access=Access.at(HOST, sys.argv[2:]))])
