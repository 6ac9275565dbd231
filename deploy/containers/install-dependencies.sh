#!/bin/sh
# Installs the production dependencies of an image: `npm ci` with the given options.
#
# The optional dependencies are the embedded PostgreSQL and Node of `npm start`. TypeScript is a peer dependency of tRPC,
# for types only. Source maps and type declarations, which only editors and debuggers use, are two fifths of all bytes.
set -eu
npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund "$@"
rm -rf node_modules/typescript
find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
