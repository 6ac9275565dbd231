/** Works on all items, `count` at a time. */
export async function inParallel<Item>(
  count: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const remaining = items.values()
  const worker = async () => {
    for (const item of remaining) await work(item)
  }
  await Promise.all(Array.from({ length: count }, worker))
}
