"""A program of its own: GGUF to safetensors. Run as `python -m airjudge.weights.dequantise FILE FOLDER`.

It says on stdout what it is at, one line each; what goes wrong is on stderr. Being a process, it
gives all its memory back, and whatever happens to it cannot hurt its caller.
"""

import sys
from pathlib import Path

from airjudge.weights.convert import EXIT_NO_CONVERTER, EXIT_NO_TEMPLATE


def dequantise(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer to a folder, in bfloat16, as transformers saves them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    print("convert: reading the tokenizer", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if not tokenizer.chat_template:
        print("the file holds no chat template", file=sys.stderr)
        sys.exit(EXIT_NO_TEMPLATE)
    tokenizer.save_pretrained(folder)
    print("convert: reading the weights", flush=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    print("convert: writing the weights", flush=True)
    model.save_pretrained(folder)


def main() -> None:
    """Read the two paths from the command line."""
    try:
        import accelerate  # noqa: F401
        import gguf
        import transformers
    except ImportError as error:
        print(f"no module named {error.name}", file=sys.stderr)
        sys.exit(EXIT_NO_CONVERTER)
    print(f"converter: transformers {transformers.__version__}", flush=True)
    dequantise(Path(sys.argv[1]), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
