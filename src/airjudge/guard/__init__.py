"""What stands before the vLLM that we start, inside its process: who may ask it what, and how much may come in.

vLLM wants its key under /v1 alone and reads any body; uvicorn waits for any head. vLLM loads `Guard` by its
option --middleware. Only the standard library is imported here: what is loaded there loads in milliseconds.
"""

from airjudge.guard.asgi import KEY_VARIABLE, MAX_BODY_VARIABLE, Guard
from airjudge.guard.strangers import Bounds

__all__ = ["KEY_VARIABLE", "MAX_BODY_VARIABLE", "Bounds", "Guard"]
