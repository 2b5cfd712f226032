"""Code that runs inside the user's Python kernel, not inside oi-tui.

`kernel_setup` sends the source of these modules to the kernel at its start, where they become `_oi_tui.<name>`. They
run under whatever Python the user chose (3.9 or newer), so they import the standard library, IPython and ipykernel
only, and never each other. Each has a function `install`; a part that does not fit the user's ipykernel fails alone.
"""
