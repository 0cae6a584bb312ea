# Two images from one lock: the server, and a controller that controls nothing but its own container (to try things out;
# a controller for a host runs on that host).
FROM python:3.13-slim-bookworm AS dependencies
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/holdline
COPY requirements.txt ./
RUN /opt/holdline/bin/pip install --require-hashes -r requirements.txt && /opt/holdline/bin/pip uninstall -y pip

FROM python:3.13-slim-bookworm AS base
ENV PATH=/opt/holdline/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# A fixed number, so that volumes stay theirs from image to image.
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin holdline && install -d -o holdline -m 0700 /data /state
COPY --from=dependencies /opt/holdline /opt/holdline
WORKDIR /srv/holdline
COPY controller_client controller_client
# Bytecode once, here: the user of the images cannot write it, and each start would compile all of it.
RUN python -m compileall -q controller_client

FROM base AS controller
USER 10001
VOLUME /state
# The daemon says nothing on a port; that it lives is that its process does.
ENTRYPOINT ["python", "-m", "controller_client", "run", "--state-dir", "/state"]

# The files of others that the console's pages load, each checked against the hash in the lock.
FROM python:3.13-slim-bookworm AS browser-files
WORKDIR /srv/holdline
COPY requirements-node.txt ./
COPY quickstart quickstart
COPY console/browser console/browser
RUN python -m quickstart.browser_files

FROM base AS server
# For manage.py backup and restore. Of the version of the database in docker-compose.yml.
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-client && rm -rf /var/lib/apt/lists/*
ENV HOLDLINE_DATA_DIR=/data DJANGO_SETTINGS_MODULE=config.settings.production
COPY manage.py ./
COPY agent agent
COPY backup backup
COPY config config
COPY console console
COPY mcp_adapter mcp_adapter
COPY projects projects
COPY deploy deploy
RUN python -m compileall -q agent backup config console mcp_adapter projects
COPY --from=browser-files /srv/holdline/console/static/console/vendor console/static/console/vendor
COPY --from=browser-files /usr/local/bin/node /opt/holdline/bin/node
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["python", "-m", "config.server", "--bind", "0.0.0.0", "--port", "8000"]
