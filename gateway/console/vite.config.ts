import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [react()],
  // Without it, Vite adds a script for browsers that have no module preloading.
  build: {
    target: 'es2024',
    // Browsers that have light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  // The gateway puts the nonce of each response there.
  html: { cspNonce: '__NONCE__' },
  logLevel: 'warn',
})
