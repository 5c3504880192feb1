# Draws the benchmark's results: gnuplot -e "tsv='bench.tsv'; png='bench.png'" bench.gp
# Lines of the tsv: table, row, peer, ours, peer's, ratio. A part that was not measured is left empty.
set terminal pngcairo noenhanced size 1500,1050 font "DejaVu Sans,10" background rgb "white"
set output png
set datafile separator "\t"
set grid ytics lt 1 lc rgb "#dddddd"
set border 3
set xtics nomirror
set ytics nomirror
set format y "%g"
set boxwidth 0.7
set style fill solid

OURS = 0x1f77b4
PEER = 0xb0b0b0

# What an awk program makes of the lines of one table.
lines(table, program) = sprintf("< awk -F'\\t' -v OFS='\\t' '$1 == \"%s\" %s' '%s'", table, program, tsv)
count(table) = int(system(sprintf("awk -F'\\t' '$1 == \"%s\"' '%s' | wc -l", table, tsv)))

# Ours once for each workload, then its peers.
ours_then_peers = '&& $2 ~ /^dense 48 B/ { if ($2 != last) print "ours, " substr($2, 13), $4, 1; last = $2; print $3, $5, 0 }'

set multiplot layout 2,2 margins 0.07,0.98,0.12,0.95 spacing 0.09,0.19

set title "Ingest: processor time, 48-byte records, dense IDs (log scale)"
set ylabel "ns a record"
set logscale y
set yrange [5:*]
set xtics rotate by -25 font ",9"
if (count("ingest: processor time") > 0) {
    plot lines("ingest: processor time", ours_then_peers) \
        using 0:2:($3 > 0 ? OURS : PEER):xtic(1) with boxes lc rgb variable notitle, \
        '' using 0:2:(sprintf("%.0f", $2)) with labels offset 0,0.7 notitle
} else {
    set multiplot next
}

set title "Size: stored bytes / raw bytes"
set ylabel "ratio"
unset logscale y
set yrange [0:1.1]
if (count("size") > 0) {
    plot lines("size", "{ sub(/,.*/, \"\", $2); print $2, $6 }") using 0:2:xtic(1) with boxes lc rgb OURS notitle, \
        '' using 0:2:(sprintf("%.2f", $2)) with labels offset 0,0.7 notitle, \
        1 with lines lc rgb "black" dt 2 title "raw dump"
} else {
    set multiplot next
}

set title "One trajectory of 5 epochs, median (log scale)"
set ylabel "microseconds"
set logscale y
set yrange [1:1000000]
set key top right
p50 = '&& $2 ~ /^dense 48 B.*p50/ && $3 !~ /upstream|bound/ { sub(/ (get|it[.])$/, "", $3); if (!n++) print "ours", $4 * UNIT; print $3, $5 * UNIT }'
in_unit(unit) = system(sprintf("printf '%%s' '%s' | sed 's/UNIT/%s/g'", p50, unit))
cold = "trajectory: cold, with opening"
warm = "trajectory: warm, page cache and open handle"
if (count(cold) > 0) {
    plot lines(cold, in_unit("1000")) using ($0 - 0.2):2:(0.38) with boxes lc rgb OURS title "cold, opening included", \
        '' using ($0 - 0.2):2:(sprintf("%.0f", $2)) with labels offset 0,0.7 notitle, \
        lines(warm, in_unit("1")) using ($0 + 0.2):2:(0.38):xtic(1) with boxes lc rgb "#ff7f0e" title "warm, open handle", \
        '' using ($0 + 0.2):2:(sprintf("%.1f", $2)) with labels offset 0,0.7 notitle
} else {
    set multiplot next
}

set title "One trajectory against a scan of the raw dumps, cold (log scales)"
set ylabel "ms"
set xlabel "raw data, MB"
set logscale xy
set yrange [*:*]
set xtics norotate autofreq
set key top left
megabytes = '{ n = $2; sub(/.* x /, "", n); print (n ~ /M/ ? n * 1e6 : n * 1e3) * 5 * 48 / 1e6, $4, $5 }'
if (count("trajectory against a full scan, cold") > 0) {
    plot lines("trajectory against a full scan, cold", megabytes) \
        using 1:3 with linespoints lw 2 pt 7 lc rgb PEER title "full scan, reading only", \
        '' using 1:2 with linespoints lw 2 pt 7 lc rgb OURS title "trajectory"
}
unset multiplot
