// Preloaded by the npm scripts (node -r), before an older Node would stumble over TypeScript with a puzzling error.
const needed = 24
if (Number.parseInt(process.versions.node, 10) < needed) {
  console.error(
    `This needs Node ${needed} or later and runs on ${process.versions.node}: run npm ci, which brings Node ${needed} along on Linux, or install it.`,
  )
  process.exit(1)
}

// Compiled once, not at every start: half of the time that a short command takes. In a folder of ours, since what is
// read back from there is run.
const { enableCompileCache } = require('node:module')
enableCompileCache(require('node:path').join(__dirname, '../node_modules/.cache/node'))
