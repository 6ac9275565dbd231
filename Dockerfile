# One stage for each program, on a common base. There is no build step: Node runs the TypeScript directly.
#
# Every COPY from the checkout sets its mode: a checkout made under umask 077 would otherwise give files that the user of
# the container cannot read. 755 works with every BuildKit; "readable, and executable only for folders" does not.

FROM node:24.21.0-trixie-slim AS dependencies
WORKDIR /app
COPY --chmod=755 package.json package-lock.json .npmrc ./
COPY --chmod=755 services/core/package.json services/core/
COPY --chmod=755 gateway/package.json gateway/
COPY --chmod=755 examples/payouts/package.json examples/payouts/
# Optional dependencies are the embedded PostgreSQL and Node of `npm start`. TypeScript is a peer dependency of tRPC, for
# types only. Source maps and type declarations serve editors and debuggers; they are two fifths of all bytes.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund && rm -rf node_modules/typescript && \
  find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM node:24.21.0-trixie-slim AS base
WORKDIR /app
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY --chmod=755 containers/is-ready.sh /usr/local/bin/is-ready
COPY --chmod=755 package.json ./
COPY --chmod=755 services/core/package.json services/core/
COPY --chmod=755 services/core/contract services/core/contract
COPY --chmod=755 services/core/client services/core/client
# The user `node`, by number, so that an orchestrator can check that it is not root.
USER 1000:1000

FROM base AS core
ENV CORE_HOST=0.0.0.0
COPY --chmod=755 services/core/src services/core/src
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s CMD ["is-ready", "8081"]
CMD ["node", "services/core/src/main.ts"]

FROM base AS migrate
COPY --chmod=755 services/core/src services/core/src
CMD ["node", "services/core/src/migrate.ts"]

# The internal listener stays on loopback unless INTERNAL_HOST says otherwise.
FROM base AS gateway
ENV GATEWAY_HOST=0.0.0.0
COPY --chmod=755 gateway gateway
EXPOSE 8080 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s CMD ["is-ready", "8080"]
CMD ["node", "gateway/src/main.ts"]

# npm run admin, npm run call, and the step that creates the secrets.
FROM base AS tools
COPY --chmod=755 gateway gateway
COPY --chmod=755 scripts scripts
COPY --chmod=755 containers containers
ENTRYPOINT ["node"]
