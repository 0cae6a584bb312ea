"""The only writer on behalf of controllers.

These are synchronous functions, each of them one transaction, called through ``in_database``.

* :mod:`hello` accepts or refuses a connection; :mod:`reconciling` and :mod:`restored` then bring
  the sessions of the host and of the database together
* :mod:`batch` stores many messages of one connection in one transaction: the hot path
* :mod:`commands` takes commands out of the outbox, and records their answers
* :mod:`refusals` has the reasons for which a connection is closed
"""
