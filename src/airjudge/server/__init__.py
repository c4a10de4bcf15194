"""A vLLM process that we own: started on loopback, watched, and ended with everything it started."""

from airjudge.server.command import OFFLINE
from airjudge.server.process import serve, watch
from airjudge.server.registry import Server, running, running_model

__all__ = ["OFFLINE", "Server", "running", "running_model", "serve", "watch"]
