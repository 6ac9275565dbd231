// Preloaded by the npm scripts (node -r), because an older Node fails on TypeScript with an unhelpful error.
const needed = 24
if (Number.parseInt(process.versions.node, 10) < needed) {
  console.error(
    `Node ${needed} or later is required, and this is Node ${process.versions.node}: run npm ci, which installs Node ${needed} on Linux, or install it yourself.`,
  )
  process.exit(1)
}

// Caches compiled code, which halves the time of a short command. The folder is inside the checkout, because Node runs what
// it reads from there.
const { enableCompileCache } = require('node:module')
enableCompileCache(require('node:path').join(__dirname, '../node_modules/.cache/node'))
