# Puppetboard for docker-compose.yml: its packages by their hashes, nothing else.
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
COPY requirements/puppetboard.txt /src/
RUN python3 -m venv /opt/puppetboard \
  && /opt/puppetboard/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /src/puppetboard.txt

FROM ${BASE}
# The same user with the same number as in the image of the pair, which is made like this: it reads the certificate's key that that one has fetched.
RUN useradd --system --home-dir /var/lib/puppet --create-home puppet
COPY --from=build /opt/puppetboard /opt/puppetboard
USER puppet
ENV PUPPETBOARD_SETTINGS=/opt/puppetboard/lib/python3.11/site-packages/puppetboard/docker_settings.py
EXPOSE 8088
CMD ["/opt/puppetboard/bin/gunicorn", "--bind", "0.0.0.0:8088", "--threads", "4", "puppetboard.app:app"]
