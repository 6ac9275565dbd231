import { NativeSelect } from '@mantine/core'
import { currencyDecimals } from '@workspace-wallet/contract'
import { useText } from '../preferences/preferences.tsx'

const codes = [...currencyDecimals.keys()].sort()

export function CurrencySelect({ value, onChange }: { value: string; onChange: (currency: string) => void }) {
  const { fields } = useText()
  return (
    <NativeSelect
      label={fields.currency}
      required
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
      data={['', ...codes]}
    />
  )
}
