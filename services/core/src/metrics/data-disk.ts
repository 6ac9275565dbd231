import { statfs } from 'node:fs/promises'
import { Gauge, type Registry } from 'prom-client'

/** Exports the free and total space of the disk that holds a directory. Without access to it, the metric has no series. */
export function watchDataDisk(registry: Registry, directory: string): void {
  new Gauge({
    name: 'core_data_disk_bytes',
    help: 'Space of the disk that holds DATA_DIR: available to programs other than those of root, and in total',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      this.reset()
      const disk = await statfs(directory).catch(() => undefined)
      if (!disk) return
      this.set({ state: 'available' }, disk.bavail * disk.bsize)
      this.set({ state: 'total' }, disk.blocks * disk.bsize)
    },
  })
}
