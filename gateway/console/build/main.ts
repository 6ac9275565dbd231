/**
 * Builds the console: `node gateway/console/build/main.ts [FOLDER]`. Without a folder, it builds into `consoleFolder()` unless the
 * current sources are built already, and removes the builds of earlier ones. `npm start` and the tests run it; the image does in
 * a stage of its own.
 */
import { access, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { consoleFolder } from './folder.ts'

const configFile = fileURLToPath(new URL('../vite.config.ts', import.meta.url))

async function buildOnce(folder: string): Promise<void> {
  if (await exists(folder)) return
  // Programs that build at the same time build the same, each in a folder of its own.
  const draft = `${folder}.${process.pid}`
  try {
    await buildInto(draft)
    await rename(draft, folder)
  } catch (error) {
    if (!(await exists(folder))) throw error
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  await removeOthers(folder)
}

async function buildInto(outDir: string): Promise<void> {
  await build({ configFile, build: { outDir, emptyOutDir: true } })
}

/** A gateway that runs has read its files when it started. */
async function removeOthers(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder)))
    if (/^[0-9a-f]{16}$/.test(name) && name !== basename(folder))
      await rm(join(dirname(folder), name), { recursive: true, force: true })
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

// The gateway may run as another user.
process.umask(0o022)
const [folder] = process.argv.slice(2)
await (folder === undefined ? buildOnce(await consoleFolder()) : buildInto(resolve(folder)))
