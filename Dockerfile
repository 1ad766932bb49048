# syntax=docker/dockerfile:1

# docker build --target test -t carillon-test . && docker run --rm carillon-test
#   runs every test where nothing may be installed on the machine itself.
# docker build -t carillon .
#   is the command line: docker run --rm carillon scheduler --help

FROM node:20-bookworm-slim AS packages
WORKDIR /carillon
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund

FROM packages AS test
COPY . .
RUN ./scripts/setup.sh redis etcd postgres faketime && rm -rf /var/lib/apt/lists/*
CMD ["./scripts/test.sh"]

FROM packages AS build
COPY . .
RUN npm run build
# bullmq is a peer: an application brings its own, this image needs one. Types and source maps are for developers.
RUN npm pack --ignore-scripts --pack-destination /tmp \
  && npm install --prefix /opt/carillon --omit=dev --no-audit --no-fund /tmp/carillon-*.tgz \
     "bullmq@$(node -p "require('bullmq/package.json').version")" \
  && find /opt/carillon -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM node:20-bookworm-slim
COPY --from=build /opt/carillon /opt/carillon
ENV NODE_ENV=production PATH=/opt/carillon/node_modules/.bin:$PATH
USER node
WORKDIR /home/node
# Of the scheduler in this container: it is a member and makes progress. Settings come from the environment.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["carillon", "instances", "check"]
ENTRYPOINT ["carillon"]
CMD ["--help"]
