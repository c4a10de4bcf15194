"""The judges of a bundle: the verified files as they came, which the other side checks and converts again."""

import shutil
from pathlib import Path

from airjudge import weights
from airjudge.profiles import Profile, load_profile, profile_path
from airjudge.weights import Progress


def copy_judge(name: str, folder: Path, progress: Progress) -> Profile:
    """Copy a judge's weights and profile into a folder of its own; they are pulled first if they are not here.

    Raises:
        ProfileError: If there is no such profile.
        WeightsError: If they cannot be brought, or are not what the profile names.
    """
    profile = load_profile(name)
    weights.pull(profile, progress=progress)
    weights.verify(profile, progress=progress)
    target = folder / profile.id
    target.mkdir(parents=True)
    for path in weights.carried_files(profile):
        progress(f"copy {path.name}", 0, 0)
        shutil.copyfile(path, target / path.name)
    shutil.copyfile(profile_path(name), target / "profile.toml")
    return profile
