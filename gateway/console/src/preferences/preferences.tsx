import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { type Catalogue, type Language, languages } from '../locales/catalogue.ts'
import { enUS } from '../locales/en-US/index.ts'
import { zhCN } from '../locales/zh-CN/index.ts'

const catalogues: Record<Language, Catalogue> = { 'en-US': enUS, 'zh-CN': zhCN }

type Preferences = {
  language: Language
  setLanguage: (language: Language) => void
  /** Whether times are shown in UTC instead of the zone of the browser. */
  isUtc: boolean
  setUtc: (isUtc: boolean) => void
}

const PreferencesContext = createContext<Preferences | null>(null)

export function usePreferences(): Preferences {
  const preferences = useContext(PreferencesContext)
  if (!preferences) throw new Error('there is no PreferencesProvider')
  return preferences
}

/** All texts in the language of the operator. */
export function useText(): Catalogue {
  return catalogues[usePreferences().language]
}

export function PreferencesProvider({ children }: { children: ReactNode }) {
  const [stored, setLanguage] = useStored<string>('console-language', preferredLanguage())
  const language = languages.find(each => each === stored) ?? languages[0]
  const [isUtc, setUtc] = useStored<boolean>('console-utc', false)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const value = useMemo(() => ({ language, setLanguage, isUtc, setUtc }), [language, setLanguage, isUtc, setUtc])
  return <PreferencesContext value={value}>{children}</PreferencesContext>
}

function preferredLanguage(): Language {
  const isChinese = navigator.languages.some((tag, at) => at === 0 && tag.toLowerCase().startsWith('zh'))
  return isChinese ? 'zh-CN' : languages[0]
}

function useStored<Value extends string | boolean>(key: string, initial: Value): [Value, (value: Value) => void] {
  const [value, setValue] = useState<Value>(() => {
    const stored = localStorage.getItem(key)
    return stored === null ? initial : ((typeof initial === 'boolean' ? stored === 'true' : stored) as Value)
  })
  const store = (next: Value) => {
    localStorage.setItem(key, String(next))
    setValue(next)
  }
  return [value, store]
}
