# The server alone. Controllers run on the hosts they control, not in here.
FROM python:3.13-slim-bookworm
ENV PYTHONUNBUFFERED=1 HOLDLINE_DATA_DIR=/data
WORKDIR /srv/holdline
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt && useradd --system --create-home holdline && install -d -o holdline -m 0700 /data
COPY manage.py ./
COPY config config
COPY projects projects
COPY mcp_adapter mcp_adapter
COPY controller_client controller_client
USER holdline
VOLUME /data
EXPOSE 8000
CMD ["daphne", "-b", "0.0.0.0", "-p", "8000", "--websocket_timeout", "-1", "--ping-interval", "10", "--ping-timeout", "10", \
     "--application-close-timeout", "30", "--websocket-max-message-size", "262144", "--websocket-max-frame-size", "262144", \
     "config.asgi:application"]
