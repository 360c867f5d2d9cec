# PostgreSQL for docker-compose.yml where no registry can be reached: it takes the variables that the official image takes here.
ARG BASE
FROM ${BASE}
COPY postgres.sh /
RUN install -d -o postgres -g postgres /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
USER postgres
ENTRYPOINT ["sh", "/postgres.sh"]
