# The same image is master, agent and command line. BASE: any Debian with python3 and its venv module.
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY bin bin
COPY shared shared
COPY certs/*.py certs/py.typed certs/
COPY master master
COPY agent agent
COPY bunraku bunraku
RUN python3 -m venv /opt/bunraku && /opt/bunraku/bin/pip install --no-cache-dir .

FROM ${BASE}
# What a master writes is below the home of its user, who is not root; the folder is there so that a volume takes its owner.
RUN useradd --system --home-dir /var/lib/puppet --create-home puppet && install -d -o puppet -g puppet -m 0750 /var/lib/puppet/.puppet
COPY --from=build /opt/bunraku /opt/bunraku
ENV PATH=/opt/bunraku/bin:$PATH
EXPOSE 8140
ENTRYPOINT ["puppet"]
CMD ["help"]
