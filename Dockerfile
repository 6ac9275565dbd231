# One stage for each program, on common ground. Node runs the TypeScript as it stands: nothing is compiled.

FROM node:24.21.0-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY services/core/package.json services/core/
COPY gateway/package.json gateway/
COPY examples/payouts/package.json examples/payouts/
# What is optional is the embedded PostgreSQL and Node of `npm start`. TypeScript comes because tRPC's types ask for it.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund && rm -rf node_modules/typescript

FROM node:24.21.0-trixie-slim AS ground
WORKDIR /app
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY services/core/package.json services/core/
COPY services/core/contract services/core/contract
COPY services/core/client services/core/client
# `node`, by number, so that an orchestrator can see that it is not root.
USER 1000:1000

FROM ground AS core
ENV CORE_HOST=0.0.0.0
COPY services/core/src services/core/src
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8081/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "services/core/src/main.ts"]

FROM ground AS migrate
COPY services/core/src services/core/src
CMD ["node", "services/core/src/migrate.ts"]

FROM ground AS gateway
ENV GATEWAY_HOST=0.0.0.0 INTERNAL_HOST=0.0.0.0
COPY gateway gateway
EXPOSE 8080 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8082/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "gateway/src/main.ts"]

# npm run admin and npm run call, and the step that makes the secrets.
FROM ground AS tools
COPY gateway gateway
COPY scripts scripts
COPY containers containers
ENTRYPOINT ["node"]
