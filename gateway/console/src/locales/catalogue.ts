import type { enUS } from './en-US/index.ts'

/** All texts of the console. The type checker rejects a language with a missing text. */
export type Catalogue = typeof enUS

export const languages = ['en-US', 'zh-CN'] as const
export type Language = (typeof languages)[number]
