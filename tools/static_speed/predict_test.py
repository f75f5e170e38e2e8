# SPDX-License-Identifier: Apache-2.0
"""Predicted times are the formula's, worked out by hand for a card of round figures; what they rest
on is read from the log as it is; a page that no longer follows from them is told."""
import copy
import io
import json
import os
import shutil
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from unittest import mock

import cards
import hot
import predict

# 1,000 multiprocessors at 1 GHz: 10^9 clocks of a multiprocessor in a millisecond.
CARD = {"architecture": "sm_86", "sms": 1000, "gigahertz": 1.0, "gigabytes": 1000, "alu": 64, "imad": 32,
        "tensor": 1024, "sources": ["round figures"]}
LOG = """mul1 K3, microseconds a launch of one input's linears
rows              1        8
gate up        75.1     77.5
pass, ms      11.22    11.66
t(17)/t(16) 1.204, t(33)/t(32) 1.490
mcg K4, microseconds a launch of one input's linears
rows              1        8
pass, ms      13.60    14.00
"""


def limits(everything, alu, imad):
    work = [{"all": everything, "issued": {"alu": alu, "imad": imad}, "units": 2}]
    return {one.name: {arch: {"work": copy.deepcopy(work)} for arch in ("sm_86", "sm_90", "sm_121")}
            for one in hot.kernels()}


class Predictions(unittest.TestCase):
    def model(self, *counts):
        with mock.patch.dict(cards.CARDS, {"round": CARD}):
            return predict.Model("round", limits(*counts))

    def test_each_bound_is_the_formulas(self):
        # 2^30 weights at 4 bits, one launch, 8 rows: 2 instructions a weight, 1 and 0.5 of two classes.
        k, n = 1 << 15, 1 << 15
        times = self.model(4, 2, 1).linears("mul1 K4", [(k, [n], 1)], 8)
        weights = k * n
        self.assertAlmostEqual(times["memory"], (weights / 2 + 2 * (k + n)) / 1e9)
        self.assertAlmostEqual(times["issue"], 2 * weights / 128 / 1e9)
        self.assertAlmostEqual(times["alu"], weights / 64 / 1e9)
        self.assertAlmostEqual(times["imad"], 0.5 * weights / 32 / 1e9)
        self.assertAlmostEqual(times["tensor"], 2 * 8 * weights / 1024 / 1e9)

    def test_rows_choose_their_tile_and_more_than_the_tallest_read_weights_again(self):
        model = self.model(4, 2, 1)
        one = {rows: model.linears("mul1 K4", [(1024, [1024], 1)], rows) for rows in (1, 8, 9, 128, 129, 256, 257)}
        self.assertEqual(one[1], one[8])
        self.assertEqual(one[9]["tensor"], 2 * one[8]["tensor"])
        self.assertEqual(one[129], one[256])
        for bound, time in one[128].items():
            self.assertAlmostEqual(one[256][bound], 2 * time)
            self.assertAlmostEqual(one[257][bound], 3 * time)

    def test_a_share_slows_instructions_alone(self):
        times = {"memory": 3.0, "tensor": 2.0, "issue": 2.5, "alu": 1.0, "imad": 0.5}
        self.assertEqual(predict.largest(times), 3.0)
        self.assertEqual(predict.largest(times, 0.5), 5.0)
        self.assertEqual(predict.largest({**times, "memory": 9.0}, 0.5), 9.0)

    def test_more_instructions_never_predict_less(self):
        few, many = self.model(800, 4, 2), self.model(801, 4, 2)
        rates = predict.MIXES["mul1 K3 and K4"]
        for what in ("step", "window"):
            self.assertLess(getattr(few, what)(rates), getattr(many, what)(rates))
        self.assertLess(few.draft(), many.draft())

    def test_the_bodys_400_linears_and_the_head(self):
        self.assertEqual(sum(len(columns) * times for _, columns, times in [*predict.BODY, predict.HEAD]), 401)
        self.assertEqual(sum(k * sum(columns) * times for k, columns, times in predict.BODY), 24326963200)

    def test_every_card_says_where_its_figures_come_from(self):
        for name, card in cards.CARDS.items():
            self.assertGreaterEqual(len(card["sources"]), 2, name)

    def test_the_log_is_read_as_it_is(self):
        self.assertEqual(predict.measured_linears(LOG), {"mul1 K3": {1: 11.22, 8: 11.66}, "mcg K4": {1: 13.6, 8: 14.0}})
        with self.assertRaises(ValueError):
            predict.measured_linears(LOG.replace("11.22    11.66", "11.22"))

    def test_a_share_is_that_of_the_codebook(self):
        rows = [{"rate": rate, "rows": 8, "share": share} for rate, share in
                (("mul1 K3", 0.4), ("mul1 K4", 0.5), ("mcg K4", 0.6))]
        self.assertAlmostEqual(predict.share_of(rows, "mul1 K3 and K4", 8), 0.45)
        self.assertEqual(predict.share_of(rows, "3inst K3 and K4", 8), 0.6)
        with self.assertRaises(ZeroDivisionError):
            predict.share_of(rows, "mcg K3 and K4", 1)


class Page(unittest.TestCase):
    """The check of the committed files, on copies."""

    def run_on_copies(self, spoil):
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for name in ("LIMITS", "MEASURED", "RESULT", "PAGE"):
                paths[name] = os.path.join(folder, name)
                shutil.copy(getattr(predict, name), paths[name])
            spoil(paths)
            with mock.patch.multiple(predict, **paths), mock.patch.object(sys, "argv", ["predict.py"]), \
                    redirect_stdout(io.StringIO()) as printed:
                return predict.main(), printed.getvalue()

    def replace(self, name, old, new):
        def spoil(paths):
            with open(paths[name], encoding="utf-8") as file:
                text = file.read()
            self.assertIn(old, text)
            with open(paths[name], "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))

        return spoil

    def test_what_is_committed_follows(self):
        code, printed = self.run_on_copies(lambda paths: None)
        self.assertEqual((code, printed), (0, "24 predictions, 18 compared with the H200: 0 stale files\n"))

    def test_a_figure_edited_by_hand_is_red(self):
        label = '"label": "predicted, not measured"'
        code, printed = self.run_on_copies(self.replace("RESULT", label, '"label": "measured"'))
        self.assertEqual(code, 1)
        self.assertIn("1 stale files", printed)

    def test_another_count_is_red(self):
        def spoil(paths):
            with open(paths["LIMITS"], encoding="utf-8") as file:
                value = json.load(file)
            work = value["kernels"]["Exl3LinearKernel mul1 K3, 8 rows"]["sm_90"]["work"][0]
            work["all"] += work["units"]
            with open(paths["LIMITS"], "w", encoding="utf-8") as file:
                json.dump(value, file)

        code, printed = self.run_on_copies(spoil)
        self.assertEqual(code, 1)
        self.assertIn("2 stale files", printed)


if __name__ == "__main__":
    unittest.main()
