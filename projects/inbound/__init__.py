"""The only writer on behalf of controllers: synchronous functions, each one transaction, called through ``in_database``.

* :mod:`hello` - a connection is accepted or refused, and every session reconciled with its host
* :mod:`batch` - many messages of one connection in one transaction: the hot path
* :mod:`commands` - what a connection has to send
* :mod:`ending` - a session ends, however it came to that
* :mod:`refusals` - why a connection is closed
"""
