import { type CSSVariablesResolver, createTheme } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'brand',
  // White text is legible on this shade and on the next one, which buttons have under the pointer.
  primaryShade: 8,
  colors: {
    brand: [
      '#eefaf5',
      '#d9f2e7',
      '#b0e4cd',
      '#83d6b1',
      '#5ec99a',
      '#3fae80',
      '#2c8f67',
      '#237757',
      '#1f684c',
      '#1b5a42',
    ],
  },
  defaultRadius: 'sm',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans SC", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  cursorType: 'pointer',
  respectReducedMotion: true,
})

/** Mantine's colors of secondary text are too faint for WCAG AA. */
export const contrastVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#495057',
    '--mantine-color-placeholder': '#6b737a',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-anchor': '#1f684c',
    '--mantine-color-brand-light-color': '#1b5a42',
  },
  dark: {
    '--mantine-color-dimmed': '#b8b8b8',
    '--mantine-color-placeholder': '#9a9a9a',
    '--mantine-color-error': '#ff8787',
    '--mantine-color-anchor': '#83d6b1',
    '--mantine-color-brand-light-color': '#b0e4cd',
  },
})
