FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY shared shared
COPY certs/*.py certs/py.typed certs/
COPY master master
COPY agent agent
COPY bunraku bunraku
RUN python -m venv /opt/bunraku && /opt/bunraku/bin/pip install --no-cache-dir .

FROM python:3.11-slim
RUN useradd --system --home-dir /var/lib/puppet --create-home puppet
COPY --from=build /opt/bunraku /opt/bunraku
ENV PATH=/opt/bunraku/bin:$PATH
EXPOSE 8140
ENTRYPOINT ["puppet"]
CMD ["help"]
