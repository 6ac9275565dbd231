# One stage for each program, on a common base. Only the console is built: Node runs the other TypeScript directly.
#
# Every COPY from the checkout sets a mode, because the user of the container cannot read files that were checked out
# under umask 077. Every BuildKit supports 755; not every one supports symbolic modes such as a+rX.

FROM node:24.21.0-trixie-slim AS manifests
WORKDIR /app
COPY --chmod=755 package.json package-lock.json .npmrc ./
COPY --chmod=755 packages/client/package.json packages/client/
COPY --chmod=755 packages/contract/package.json packages/contract/
COPY --chmod=755 packages/core-client/package.json packages/core-client/
COPY --chmod=755 packages/runtime/package.json packages/runtime/
COPY --chmod=755 services/core/package.json services/core/
COPY --chmod=755 services/courier/package.json services/courier/
COPY --chmod=755 gateway/package.json gateway/
COPY --chmod=755 gateway/console/package.json gateway/console/
COPY --chmod=755 examples/payouts/package.json examples/payouts/
COPY --chmod=755 examples/shop/package.json examples/shop/
COPY --chmod=755 deploy/containers/install-dependencies.sh /usr/local/bin/install-dependencies

# Each image has the dependencies of its program only: a gateway has no PostgreSQL driver.
FROM manifests AS core-dependencies
RUN install-dependencies --workspace services/core

FROM manifests AS courier-dependencies
RUN install-dependencies --workspace services/courier

FROM manifests AS gateway-dependencies
RUN install-dependencies --workspace gateway

FROM manifests AS tools-dependencies
RUN install-dependencies --workspace gateway --include-workspace-root

# The operators' pages. The builder has a binary for each platform, in an optional dependency.
FROM manifests AS console
RUN npm ci --ignore-scripts --no-audit --no-fund --workspace gateway/console
# That of the console extends it.
COPY --chmod=755 tsconfig.json ./
COPY --chmod=755 packages/contract packages/contract
COPY --chmod=755 packages/core-client packages/core-client
COPY --chmod=755 gateway gateway
RUN NODE_ENV=production node gateway/console/build/main.ts built

FROM node:24.21.0-trixie-slim AS base
WORKDIR /app
ENV NODE_ENV=production
COPY --chmod=755 deploy/containers/is-ready.sh /usr/local/bin/is-ready
COPY --chmod=755 package.json ./
COPY --chmod=755 packages packages
# The user `node`, by number, so that an orchestrator can verify that it is not root.
USER 1000:1000

FROM base AS core
ENV CORE_HOST=0.0.0.0
COPY --from=core-dependencies /app/node_modules node_modules
COPY --chmod=755 services/core services/core
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s CMD ["is-ready", "8081"]
CMD ["node", "services/core/src/main.ts"]

FROM base AS migrate
COPY --from=core-dependencies /app/node_modules node_modules
COPY --chmod=755 services/core services/core
CMD ["node", "services/core/src/migrate.ts"]

# The listener is on loopback unless INTERNAL_HOST is set. The health check asks there.
FROM base AS courier
COPY --from=courier-dependencies /app/node_modules node_modules
COPY --chmod=755 services/courier services/courier
EXPOSE 8083
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s CMD is-ready 8083 "$INTERNAL_HOST"
CMD ["node", "services/courier/src/main.ts"]

# The internal listener is on loopback unless INTERNAL_HOST is set.
FROM base AS gateway
ENV GATEWAY_HOST=0.0.0.0 CONSOLE_DIR=/console
COPY --from=gateway-dependencies /app/node_modules node_modules
COPY --from=console /app/built /console
COPY --chmod=755 gateway gateway
# The pages of /docs.
COPY --chmod=755 README.md CHANGELOG.md ./
COPY --chmod=755 docs docs
COPY --chmod=755 examples examples
EXPOSE 8080 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s CMD ["is-ready", "8080"]
CMD ["node", "gateway/src/main.ts"]

# npm run admin, npm run call, and the program that creates the secrets.
FROM base AS tools
COPY --from=tools-dependencies /app/node_modules node_modules
COPY --chmod=755 gateway gateway
# How a database is reached. Whoever moves a workspace copies its rows.
COPY --chmod=755 services/core services/core
COPY --chmod=755 cli cli
COPY --chmod=755 deploy deploy
ENTRYPOINT ["node"]
