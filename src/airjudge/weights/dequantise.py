"""A program of its own: GGUF to safetensors. Run as `python -m airjudge.weights.dequantise FILE FOLDER`.

It says on stdout what it is at, one line each; what goes wrong is on stderr. Being a process, it
gives all its memory back, and whatever happens to it cannot hurt its caller.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from airjudge.weights.convert import EXIT_NO_CONVERTER, EXIT_NO_TEMPLATE


def dequantise(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer to a folder, in bfloat16, as transformers saves them."""
    import torch  # noqa: PLC0415 - heavy
    import transformers  # noqa: PLC0415 - heavy

    _say(f"converter: transformers {transformers.__version__}")
    _say("convert: reading the tokenizer")
    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if not tokenizer.chat_template:
        sys.stderr.write("the file holds no chat template\n")
        sys.exit(EXIT_NO_TEMPLATE)
    tokenizer.save_pretrained(folder)
    _say("convert: reading the weights")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    _say("convert: writing the weights")
    model.save_pretrained(folder)


def main() -> None:
    """Read the two paths from the command line."""
    lacking = [name for name in ("torch", "transformers", "gguf", "accelerate") if find_spec(name) is None]
    if lacking:
        sys.stderr.write(f"{', '.join(lacking)} not installed\n")
        sys.exit(EXIT_NO_CONVERTER)
    dequantise(Path(sys.argv[1]), Path(sys.argv[2]))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
