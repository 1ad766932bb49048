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
RUN ./scripts/setup.sh && rm -rf /var/lib/apt/lists/*
CMD ["./scripts/test.sh"]

FROM packages AS build
COPY . .
RUN npm run build
# bullmq is a peer: an application brings its own, this image needs one.
RUN npm pack --ignore-scripts --pack-destination /tmp \
  && npm install --prefix /opt/carillon --no-audit --no-fund /tmp/carillon-*.tgz \
     "bullmq@$(node -p "require('bullmq/package.json').version")"

FROM node:20-bookworm-slim
COPY --from=build /opt/carillon /opt/carillon
ENV NODE_ENV=production PATH=/opt/carillon/node_modules/.bin:$PATH
USER node
WORKDIR /home/node
ENTRYPOINT ["carillon"]
CMD ["--help"]
