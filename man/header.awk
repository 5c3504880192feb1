# Makes a page of section 3 from a public header: awk -v name=deltafs -f header.awk deltafs.h
# With -v example=FILE, the page ends with this program, if there is one.
#
# The header begins with a comment: a title, then paragraphs and lists. A comment at the start of a line belongs to the
# declarations below it, up to an empty line outside of braces or the next such comment. "/* ---- Title ---- */" begins
# a section. A comment without declarations is a paragraph.

# Text for troff.
function escape(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/~/, "\\(ti", s)
    return s ~ /^[.']/ ? "\\\&" s : s
}

# Print the lines of a comment, after `before`.
function print_text(before,    i, s, is_new) {
    if (count > 0)
        printf "%s", before
    is_new = 0
    for (i = 1; i <= count; i++) {
        s = text[i]
        if (s ~ /^ *$/) {
            is_new = 1
        } else if (s ~ /^ +([0-9]+\.|-) /) {
            sub(/^ +/, "", s)
            if (s ~ /^-/)
                print ".IP \\(bu 3"
            else
                print ".IP " substr(s, 1, index(s, ".")) " 3"
            print escape(substr(s, index(s, " ") + 1))
            is_new = 0
        } else if (s ~ /^[A-Z][a-z]+$/ && text[i + 1] ~ /^ +([0-9]+\.|-) /) {
            print ".SS " s
            is_new = 0
        } else {
            sub(/^ +/, "", s)
            if (is_new)
                print ".PP"
            print escape(s)
            is_new = 0
        }
    }
    count = 0
}

# The title's first sentence is the page's name; what follows it begins the description.
function print_head(    i, title) {
    for (i = 1; i <= count && text[i] !~ /^ *$/; i++)
        title = title (i > 1 ? " " : "") text[i]
    sub(/^[^:]*: */, "", title)
    for (; i > 1; i--)
        text[i - 1] = ""
    text[1] = title
    if (match(title, /\.( |$)/)) {
        text[1] = substr(title, RSTART + 2)
        title = substr(title, 1, RSTART - 1)
    }
    print ".TH " toupper(name) " 3 \"\" \"DeltaFS\" \"Library Functions\"\n.nh"
    print ".SH NAME\n" escape(name) " \\- " escape(title)
    print ".SH SYNOPSIS\n.nf\n.B #include <deltafs/" escape(name) ".h>\n.fi\n.SH DESCRIPTION"
    while (count > 0 && text[1] ~ /^ *$/) {
        for (i = 1; i < count; i++)
            text[i] = text[i + 1]
        count--
    }
    print_text("")
    is_described = 1
}

# Print the declarations and the comment above them.
function flush(    i) {
    if (declared > 0) {
        print ".PP\n.nf\n.ft B"
        for (i = 1; i <= declared; i++)
            print escape(declaration[i])
        print ".ft R\n.fi"
        print ".RS 4"
        print_text("")
        print ".RE"
    } else {
        print_text(".PP\n")
    }
    declared = count = depth = 0
}

function add_text(s) {
    is_comment = !sub(/ ?\*\/ *$/, "", s)
    sub(/^(\/\*| \*) ?/, "", s)
    text[++count] = s
}

is_comment { add_text($0); if (!is_comment && !is_described) print_head(); next }
/^\/\* ---- .* ---- \*\/$/ {
    flush()
    gsub(/^\/\* ---- |:.*$| ---- \*\/$/, "")
    print ".SH " toupper($0)
    next
}
/^\/\*/ { flush(); add_text($0); if (!is_comment && !is_described) print_head(); next }
/^#(if|endif|include)/ || /^#define (DELTAFS_API|DELTAFS_[A-Z0-9]*_?H$)/ || /^extern "C"/ { count = 0; next }
/^}$/ && depth == 0 { next }
/^ *$/ && depth == 0 { flush(); next }
{
    sub(/^DELTAFS_API /, "")
    declaration[++declared] = $0
    depth += gsub(/[{]/, "{") - gsub(/[}]/, "}")
}
END {
    flush()
    for (i = 0; (getline line < example) > 0; i++) {
        if (i == 0)
            print ".SH EXAMPLE\n.nf"
        print escape(line)
    }
    if (i > 0)
        print ".fi"
    print ".SH SEE ALSO"
    n = split("deltafs deltafs_fileindex deltafs_hdf5 deltafs_logical deltafs_mpi deltafs_namespace deltafs_query", page, " ")
    for (i = 1; i <= n; i++)
        if (page[i] != name)
            print ".BR " page[i] " (3),"
    print ".BR deltafs (7)"
}
