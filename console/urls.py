"""The addresses of the console, mounted at ``/``."""

from typing import Final

from django.urls import path

from console.login.second_factor import ask_code, second_factor
from console.login.views import login, logout
from console.pages.approvals import answer, approval, approvals
from console.pages.event_export import export
from console.pages.host import host, measure, revoke, stop_all
from console.pages.hosts import enrol, hosts
from console.pages.now import now
from console.pages.replay import download, erase, index, part, replay, screen, screens
from console.pages.run import run, run_live, run_resume, run_stop
from console.pages.runs import run_new, runs
from console.pages.search import search
from console.pages.session import events, session
from console.pages.share import share
from console.pages.timeline import timeline, verify
from console.pages.waiting.attention import attention, attention_event, send_letter_again, snooze
from console.pages.waiting.secret import secret

app_name: Final = "console"
urlpatterns = [
    path("", now, name="now"),
    path("sessions/<uuid:session_id>/", session, name="session"),
    path("sessions/<uuid:session_id>/secret/", secret, name="secret"),
    path("sessions/<uuid:session_id>/events/", events, name="events"),
    path("sessions/<uuid:session_id>/replay/", replay, name="replay"),
    path("sessions/<uuid:session_id>/replay/index/", index, name="replay_index"),
    path("sessions/<uuid:session_id>/replay/part/", part, name="replay_part"),
    path("sessions/<uuid:session_id>/replay/screens/", screens, name="replay_screens"),
    path("sessions/<uuid:session_id>/replay/screen/", screen, name="replay_screen"),
    path("sessions/<uuid:session_id>/replay/erase/", erase, name="replay_erase"),
    path("sessions/<uuid:session_id>/replay/download/", download, name="replay_download"),
    path("hosts/", hosts, name="hosts"),
    path("hosts/enrol/", enrol, name="enrol"),
    path("hosts/<uuid:host_id>/", host, name="host"),
    path("hosts/<uuid:host_id>/echo/", measure, name="measure"),
    path("hosts/<uuid:host_id>/stop/", stop_all, name="stop_all"),
    path("hosts/<uuid:host_id>/revoke/", revoke, name="revoke"),
    path("approvals/", approvals, name="approvals"),
    path("approvals/<int:approval_id>/", approval, name="approval"),
    path("approvals/<int:approval_id>/answer/", answer, name="answer_approval"),
    path("attention/", attention, name="attention"),
    path("attention/<uuid:event_id>/", attention_event, name="attention_event"),
    path("attention/<uuid:event_id>/snooze/", snooze, name="snooze"),
    path("messages/<uuid:message_id>/again/", send_letter_again, name="send_again"),
    path("runs/", runs, name="runs"),
    path("runs/new/", run_new, name="run_new"),
    path("runs/<uuid:run_id>/", run, name="run"),
    path("runs/<uuid:run_id>/live/", run_live, name="run_live"),
    path("runs/<uuid:run_id>/stop/", run_stop, name="run_stop"),
    path("runs/<uuid:run_id>/resume/", run_resume, name="run_resume"),
    path("search/", search, name="search"),
    path("timeline/", timeline, name="timeline"),
    path("timeline/export/", export, name="export"),
    path("timeline/verify/", verify, name="verify"),
    path("share/<uuid:session_id>/", share, name="share"),
    path("login/", login, name="login"),
    path("login/code/", ask_code, name="ask_code"),
    path("login/second-factor/", second_factor, name="second_factor"),
    path("logout/", logout, name="logout"),
]
