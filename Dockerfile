# The same image is master, agent and command line. BASE: any Debian with python3 and its venv module.
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
WORKDIR /src
# What a release is made of, each file by its hash; then what a wheel is made with; then the wheel, which has no hash yet.
COPY requirements requirements
RUN python3 -m venv /opt/bunraku \
  && /opt/bunraku/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/release.txt \
  && python3 -m venv /opt/build \
  && /opt/build/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY bin bin
COPY shared shared
COPY certs/*.py certs/py.typed certs/
COPY certs/files certs/files
COPY httpd httpd
COPY language language
COPY ca ca
COPY environments environments
COPY store store
COPY master master
COPY agent agent
COPY bunraku bunraku
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheel . \
  && /opt/bunraku/bin/pip install --no-cache-dir --no-index --no-deps /opt/build/wheel/*.whl

FROM ${BASE}
# What a master writes is below the home of its user, who is not root; the folder is there so that a volume takes its owner.
RUN useradd --system --home-dir /var/lib/puppet --create-home puppet && install -d -o puppet -g puppet -m 0750 /var/lib/puppet/.puppet
COPY --from=build /opt/bunraku /opt/bunraku
ENV PATH=/opt/bunraku/bin:$PATH
EXPOSE 8140
ENTRYPOINT ["puppet"]
CMD ["help"]
