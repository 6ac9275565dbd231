import type { Uuid } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { LeftOut } from './left-out.ts'

const workspace = (name: string) => name as Uuid<'workspace'>
const a = workspace('a')

test('a workspace is left out while its holds are being expired, and longer after each failure', () => {
  let now = 0
  const leftOut = new LeftOut(() => now)
  leftOut.start(a)
  now = 3_600_000
  expect(leftOut.list()).toEqual([a])
  const failAfter = (ms: number) => {
    leftOut.end(a, false)
    now += ms - 1
    expect(leftOut.list()).toEqual([a])
    now++
    expect(leftOut.list()).toEqual([])
    leftOut.start(a)
  }
  for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]) failAfter(seconds * 1_000)
  leftOut.end(a, true)
  expect(leftOut.list()).toEqual([])
  leftOut.start(a)
  failAfter(1_000)
})

test('a failure is forgotten when ten minutes have passed without another one', () => {
  let now = 0
  const leftOut = new LeftOut(() => now)
  leftOut.end(a, false)
  now = 601_001
  leftOut.list()
  leftOut.end(a, false)
  now += 1_000
  expect(leftOut.list()).toEqual([])
})

test('the latest thousand are left out', () => {
  const leftOut = new LeftOut(() => 0)
  for (let at = 0; at <= 1_000; at++) leftOut.end(workspace(`${at}`), false)
  const left = leftOut.list()
  expect([left.length, left.includes(workspace('0')), left.includes(workspace('1000'))]).toEqual([1_000, false, true])
})
