# The types of C that sources of compiled modules name, as type checkers see them; C has them by trouter/_c_types.py.

import builtins
from typing import TypeAlias

Py_ssize_t: TypeAlias = builtins.int
int: TypeAlias = builtins.int
longlong: TypeAlias = builtins.int
uint: TypeAlias = builtins.int
p_uchar: TypeAlias = builtins.bytes
