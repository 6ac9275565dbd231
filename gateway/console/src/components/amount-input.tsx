import { TextInput } from '@mantine/core'
import { currencyDecimals, decimalsOf } from '@workspace-wallet/contract'
import { useText } from '../preferences/preferences.tsx'

type AmountInputProps = {
  label: string
  /** Without it, as many decimals as any currency has. */
  currency?: string | undefined
  value: string
  onChange: (value: string) => void
  isRequired?: boolean
}

/** An amount as text: it never becomes a binary floating-point number. */
export function AmountInput({ label, currency, value, onChange, isRequired = true }: AmountInputProps) {
  const { money } = useText()
  const decimals = currency && currencyDecimals.has(currency) ? decimalsOf(currency) : 18
  const pattern = decimals === 0 ? '(0|[1-9][0-9]*)' : `(0|[1-9][0-9]*)(\\.[0-9]{1,${decimals}})?`
  return (
    <TextInput
      label={label}
      description={money.decimals(decimals)}
      inputMode="decimal"
      autoComplete="off"
      required={isRequired}
      pattern={pattern}
      title={money.decimals(decimals)}
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
      rightSection={currency}
      rightSectionWidth={60}
    />
  )
}
