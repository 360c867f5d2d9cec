# HAProxy for docker-compose.yml where no registry can be reached.
ARG BASE
FROM ${BASE}
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
